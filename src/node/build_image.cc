// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/build_image.h"

#include <boost/json.hpp>

namespace alcove::node {
namespace json = boost::json;

std::string encode_build_image(const BuildImage& image) {
  json::array layers(image.layers.begin(), image.layers.end());
  json::object env_vars;
  for (const auto& [name, value] : image.env_vars) env_vars[name] = value;
  return json::serialize(json::object{
      {"layers", std::move(layers)},
      {"vcpu", image.limits.vcpu_count},
      {"memory", image.limits.memory_bytes},
      {"pids", image.limits.pids},
      {"disk", image.limits.disk_bytes},
      {"user", image.default_user},
      {"workdir", image.workdir},
      {"hostname", image.hostname},
      {"env", std::move(env_vars)},
      {"interpreter", image.interpreter},
  });
}

Result<BuildImage> decode_build_image(std::string_view text) {
  // The record is our own, but a data directory can be damaged: no field is trusted to be there.
  json::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) return fail(Code::kDataLoss, "template build: not JSON");
  try {
    const json::object& object = value.as_object();
    BuildImage image;
    for (const json::value& layer : object.at("layers").as_array()) {
      image.layers.emplace_back(layer.as_string());
    }
    image.limits.vcpu_count = object.at("vcpu").to_number<uint32_t>();
    image.limits.memory_bytes = object.at("memory").to_number<uint64_t>();
    image.limits.pids = object.at("pids").to_number<uint32_t>();
    image.limits.disk_bytes = object.at("disk").to_number<uint64_t>();
    image.default_user = object.at("user").as_string();
    image.workdir = object.at("workdir").as_string();
    image.hostname = object.at("hostname").as_string();
    for (const auto& [name, item] : object.at("env").as_object()) {
      image.env_vars.emplace(name, item.as_string());
    }
    // Records of earlier versions do not have it.
    if (const json::value* flag = object.if_contains("interpreter")) {
      image.interpreter = flag->as_bool();
    }
    return image;
  } catch (const std::exception& exception) {
    return fail(Code::kDataLoss, std::string("template build: ") + exception.what());
  }
}

}  // namespace alcove::node
