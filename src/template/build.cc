// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/build.h"

#include <boost/json.hpp>

#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::templates {
namespace {

namespace json = boost::json;

json::array to_array(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

// Reads fields of one object; the first missing or mistyped one makes it fail.
class Reader {
 public:
  explicit Reader(const json::object& object) : object_(object) {}

  std::string text(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || !value->is_string()) return note<std::string>(key);
    return std::string(value->get_string());
  }
  uint64_t number(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || !value->is_number()) return note<uint64_t>(key);
    json::error_code error;
    const auto result = value->to_number<uint64_t>(error);
    return error ? note<uint64_t>(key) : result;
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> result;
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || !value->is_array()) return note<std::vector<std::string>>(key);
    for (const json::value& item : value->get_array()) {
      if (!item.is_string()) return note<std::vector<std::string>>(key);
      result.emplace_back(item.get_string());
    }
    return result;
  }
  bool flag(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || !value->is_bool()) return note<bool>(key);
    return value->get_bool();
  }
  std::map<std::string, std::string> map(std::string_view key) {
    std::map<std::string, std::string> result;
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || !value->is_object()) return note<decltype(result)>(key);
    for (const auto& [name, item] : value->get_object()) {
      if (!item.is_string()) return note<decltype(result)>(key);
      result.emplace(name, item.get_string());
    }
    return result;
  }
  const std::string& bad_key() const { return bad_key_; }

 private:
  template <typename T>
  T note(std::string_view key) {
    if (bad_key_.empty()) bad_key_ = key;
    return T();
  }

  const json::object& object_;
  std::string bad_key_;
};

}  // namespace

TemplateId template_id_of(std::string_view template_name) {
  const std::string digest = sha256(cat("alcove template ", template_name));
  constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id;
  for (size_t i = 0; i < 20; ++i) {
    id += kAlphabet[static_cast<unsigned char>(digest[i]) % kAlphabet.size()];
  }
  return TemplateId(std::move(id));
}

BuildId build_id_of(std::string_view build_hash) {
  // A name-based UUID in the layout of version 8 (RFC 9562 section 5.8).
  std::string hex = sha256_hex(cat("alcove build ", build_hash)).substr(0, 32);
  hex[12] = '8';
  hex[16] = "89ab"[hex[16] % 4];
  return BuildId(cat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                     hex.substr(16, 4), "-", hex.substr(20)));
}

std::string serialize_build(const Build& build, const std::vector<image::LayerHash>& layers) {
  json::array hashes;
  for (const image::LayerHash& layer : layers) hashes.emplace_back(layer.str());
  json::object envs;
  for (const auto& [name, value] : build.envs) envs[name] = value;
  const json::object object = {
      {"hash", build.hash},
      {"name", build.template_name},
      {"aliases", to_array(build.aliases)},
      {"description", build.description},
      {"layers", std::move(hashes)},
      {"vcpu", build.limits.vcpu_count},
      {"memoryBytes", build.limits.memory_bytes},
      {"pids", build.limits.pids},
      {"diskBytes", build.limits.disk_bytes},
      {"user", build.default_user},
      {"workdir", build.workdir},
      {"hostname", build.hostname},
      {"envs", std::move(envs)},
      {"interpreter", build.interpreter},
  };
  return json::serialize(object);
}

Result<StoredBuild> parse_build(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !value.is_object()) return fail(Code::kDataLoss, "not a JSON object");
  Reader reader(value.get_object());
  StoredBuild stored;
  Build& build = stored.build;
  build.hash = reader.text("hash");
  build.template_name = reader.text("name");
  build.aliases = reader.texts("aliases");
  build.description = reader.text("description");
  build.limits.vcpu_count = static_cast<uint32_t>(reader.number("vcpu"));
  build.limits.memory_bytes = reader.number("memoryBytes");
  build.limits.pids = static_cast<uint32_t>(reader.number("pids"));
  build.limits.disk_bytes = reader.number("diskBytes");
  build.default_user = reader.text("user");
  build.workdir = reader.text("workdir");
  build.hostname = reader.text("hostname");
  build.envs = reader.map("envs");
  build.interpreter = reader.flag("interpreter");
  for (std::string& layer : reader.texts("layers")) stored.layers.emplace_back(std::move(layer));
  if (!reader.bad_key().empty()) {
    return fail(Code::kDataLoss, cat("\"", reader.bad_key(), "\" is missing or malformed"));
  }
  build.template_id = template_id_of(build.template_name);
  build.build_id = build_id_of(build.hash);
  return stored;
}

}  // namespace alcove::templates
