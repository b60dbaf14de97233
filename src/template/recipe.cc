// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/recipe.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <charconv>
#include <filesystem>
#include <initializer_list>

#include "base/strings.h"
#include "image/files.h"

namespace alcove::templates {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";

Error wrong(std::string message) { return Error(Code::kInvalidArgument, std::move(message)); }

bool consists_of(std::string_view text, std::string_view more) {
  return !text.empty() && kLower.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(std::string(kLower) + std::string(more)) == std::string_view::npos;
}

// Names go into URLs and file names.
bool is_template_name(std::string_view text) {
  return text.size() <= 128 && consists_of(text, "-_.");
}
bool is_package_name(std::string_view text) { return consists_of(text, "+.-:"); }
bool is_suite(std::string_view text) { return consists_of(text, "-"); }
// As "3.13".
bool is_python_version(std::string_view text) {
  const size_t dot = text.find('.');
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 3 &&
           part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dot != std::string_view::npos && is_number(text.substr(0, dot)) &&
         is_number(text.substr(dot + 1));
}
bool is_user_name(std::string_view text) { return text.size() <= 32 && consists_of(text, "-_"); }
bool is_host_name(std::string_view text) { return text.size() <= 64 && consists_of(text, "-."); }

// A table of the file; remembers which keys were asked for, so that the rest can be named.
class Section {
 public:
  Section(const toml::table* table, std::string name) : table_(table), name_(std::move(name)) {}

  bool has(std::string_view key) {
    known_.emplace_back(key);
    return table_ != nullptr && table_->contains(key);
  }

  Result<std::optional<std::string>> text(std::string_view key) {
    if (!has(key)) return std::optional<std::string>();
    auto value = table_->get(key)->value_exact<std::string>();
    if (!value) return fail(wrong(cat(where(key), " must be a string")));
    return value;
  }

  Result<std::vector<std::string>> texts(std::string_view key) {
    std::vector<std::string> result;
    if (!has(key)) return result;
    const toml::array* array = table_->get(key)->as_array();
    if (array == nullptr) return fail(wrong(cat(where(key), " must be a list of strings")));
    for (const toml::node& node : *array) {
      auto value = node.value_exact<std::string>();
      if (!value) return fail(wrong(cat(where(key), " must be a list of strings")));
      result.push_back(std::move(*value));
    }
    return result;
  }

  Result<uint64_t> number(std::string_view key, uint64_t fallback, uint64_t most) {
    if (!has(key)) return fallback;
    const auto value = table_->get(key)->value_exact<int64_t>();
    if (!value || *value < 1 || static_cast<uint64_t>(*value) > most) {
      return fail(wrong(cat(where(key), " must be a number from 1 to ", most)));
    }
    return static_cast<uint64_t>(*value);
  }

  Result<bool> flag(std::string_view key) {
    if (!has(key)) return false;
    const auto value = table_->get(key)->value_exact<bool>();
    if (!value) return fail(wrong(cat(where(key), " must be true or false")));
    return *value;
  }

  Result<std::map<std::string, std::string>> all_texts() {
    std::map<std::string, std::string> result;
    if (table_ == nullptr) return result;
    for (const auto& [key, node] : *table_) {
      auto value = node.value_exact<std::string>();
      if (!value) return fail(wrong(cat(where(key.str()), " must be a string")));
      result.emplace(key.str(), std::move(*value));
    }
    return result;
  }

  Result<Section> section(std::string_view key) {
    if (!has(key)) return Section(nullptr, std::string(key));
    const toml::table* table = table_->get(key)->as_table();
    if (table == nullptr) return fail(wrong(cat(where(key), " must be a table")));
    return Section(table, std::string(key));
  }

  Result<void> check_all_known() const {
    if (table_ == nullptr) return {};
    for (const auto& [key, node] : *table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) == known_.end()) {
        return fail(wrong(cat("unknown key ", where(key.str()))));
      }
    }
    return {};
  }

 private:
  std::string where(std::string_view key) const {
    return name_.empty() ? cat("\"", key, "\"") : cat("\"", name_, ".", key, "\"");
  }

  const toml::table* table_;
  std::string name_;
  std::vector<std::string> known_;
};

Result<void> read_resources(Section section, sandbox::Limits& limits) {
  constexpr uint64_t kMiB = 1 << 20;
  ALCOVE_TRY_ASSIGN(const uint64_t vcpu, section.number("vcpu", limits.vcpu_count, 1024));
  ALCOVE_TRY_ASSIGN(const uint64_t memory,
                    section.number("memory_mb", limits.memory_bytes / kMiB, 1 << 24));
  ALCOVE_TRY_ASSIGN(const uint64_t pids, section.number("pids", limits.pids, 1 << 22));
  ALCOVE_TRY_ASSIGN(const uint64_t disk,
                    section.number("disk_mb", limits.disk_bytes / kMiB, 1 << 26));
  limits.vcpu_count = static_cast<uint32_t>(vcpu);
  limits.memory_bytes = memory * kMiB;
  limits.pids = static_cast<uint32_t>(pids);
  limits.disk_bytes = disk * kMiB;
  return section.check_all_known();
}

std::string below(const std::string& folder, const std::string& path) {
  const std::filesystem::path given(path);
  return (given.is_absolute() ? given : std::filesystem::path(folder) / given)
      .lexically_normal()
      .string();
}

Result<From> read_from(Section section, const std::string& folder) {
  From from;
  int sources = 0;
  const std::pair<const char*, From::Kind> kinds[] = {{"debian", From::Kind::kDebian},
                                                      {"directory", From::Kind::kDirectory},
                                                      {"tar", From::Kind::kTar},
                                                      {"template", From::Kind::kTemplate}};
  for (const auto& [key, kind] : kinds) {
    ALCOVE_TRY_ASSIGN(const auto value, section.text(key));
    if (!value) continue;
    ++sources;
    from.kind = kind;
    from.source = *value;
  }
  ALCOVE_TRY_ASSIGN(from.packages, section.texts("packages"));
  ALCOVE_TRY_ASSIGN(const bool slim, section.flag("slim"));
  if (slim) from.docs = From::Docs::kSlim;
  ALCOVE_TRY(section.check_all_known());
  if (sources != 1 || from.source.empty()) {
    return fail(wrong("[from] must name exactly one of debian, directory, tar, template"));
  }
  switch (from.kind) {
    case From::Kind::kDebian:
      if (!is_suite(from.source)) return fail(wrong(cat("not a suite: ", from.source)));
      break;
    case From::Kind::kTemplate:
      if (!is_template_name(from.source)) return fail(wrong(cat("not a name: ", from.source)));
      break;
    case From::Kind::kDirectory:
    case From::Kind::kTar:
      from.source = below(folder, from.source);
      break;
  }
  if (from.kind != From::Kind::kDebian && (!from.packages.empty() || slim)) {
    return fail(wrong("packages and slim are for [from] debian only"));
  }
  for (const std::string& package : from.packages) {
    if (!is_package_name(package)) return fail(wrong(cat("not a package name: ", package)));
  }
  std::sort(from.packages.begin(), from.packages.end());
  return from;
}

Result<std::optional<PythonPackages>> read_python(Section section, const std::string& folder) {
  ALCOVE_TRY_ASSIGN(const auto version, section.text("version"));
  ALCOVE_TRY_ASSIGN(const auto lock, section.text("lock"));
  ALCOVE_TRY(section.check_all_known());
  if (!version && !lock) return std::optional<PythonPackages>();
  if (!version || !is_python_version(*version)) {
    return fail(wrong("\"python.version\" must be a version as 3.13"));
  }
  if (!lock || lock->empty()) return fail(wrong("\"python.lock\" must name a file"));
  return std::optional<PythonPackages>({.version = *version, .lock = below(folder, *lock)});
}

Result<std::map<std::string, uint32_t>> read_modes(Section section) {
  std::map<std::string, uint32_t> modes;
  ALCOVE_TRY_ASSIGN(const auto texts, section.all_texts());
  for (const auto& [path, text] : texts) {
    uint32_t mode = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
    if (error != std::errc{} || end != text.data() + text.size() || mode > 07777) {
      return fail(wrong(cat("modes: \"", text, "\" of ", path, " is not an octal mode")));
    }
    modes.emplace(path, mode);
  }
  return modes;
}

Result<void> check_names(const Recipe& recipe) {
  if (!is_template_name(recipe.name)) {
    return fail(wrong(cat("\"name\" must be of [a-z0-9._-]: \"", recipe.name, "\"")));
  }
  for (const std::string& alias : recipe.aliases) {
    if (!is_template_name(alias)) return fail(wrong(cat("alias must be of [a-z0-9._-]: ", alias)));
  }
  if (recipe.user && !is_user_name(*recipe.user)) {
    return fail(wrong(cat("not a user name: ", *recipe.user)));
  }
  if (recipe.hostname && !is_host_name(*recipe.hostname)) {
    return fail(wrong(cat("not a host name: ", *recipe.hostname)));
  }
  if (recipe.workdir && !recipe.workdir->starts_with('/')) {
    return fail(wrong("\"workdir\" must be an absolute path"));
  }
  if (!recipe.replaces.empty() &&
      (!is_template_name(recipe.replaces) || recipe.replaces == recipe.name)) {
    return fail(wrong(cat("\"replaces\" must name another template: ", recipe.replaces)));
  }
  if (!recipe.replaces.empty() && !recipe.aliases.empty()) {
    return fail(wrong("a recipe that replaces another has no aliases of its own"));
  }
  for (const auto& [name, value] : recipe.envs) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return fail(wrong(cat("not a variable name: ", name)));
    }
  }
  return {};
}

Result<Recipe> read_recipe(const toml::table& table, const std::string& folder) {
  Recipe recipe;
  recipe.folder = folder;
  Section top(&table, "");
  ALCOVE_TRY_ASSIGN(const auto name, top.text("name"));
  if (!name) return fail(wrong("\"name\" is missing"));
  recipe.name = *name;
  ALCOVE_TRY_ASSIGN(const auto root, top.text("root"));
  recipe.root = below(folder, root.value_or("root"));
  ALCOVE_TRY_ASSIGN(recipe.aliases, top.texts("aliases"));
  ALCOVE_TRY_ASSIGN(const auto description, top.text("description"));
  recipe.description = description.value_or("");
  ALCOVE_TRY_ASSIGN(recipe.user, top.text("user"));
  ALCOVE_TRY_ASSIGN(recipe.workdir, top.text("workdir"));
  ALCOVE_TRY_ASSIGN(recipe.hostname, top.text("hostname"));
  ALCOVE_TRY_ASSIGN(recipe.steps, top.texts("steps"));
  ALCOVE_TRY_ASSIGN(recipe.interpreter, top.flag("interpreter"));
  ALCOVE_TRY_ASSIGN(const auto replaces, top.text("replaces"));
  recipe.replaces = replaces.value_or("");
  ALCOVE_TRY_ASSIGN(Section resources, top.section("resources"));
  ALCOVE_TRY(read_resources(std::move(resources), recipe.limits));
  ALCOVE_TRY_ASSIGN(Section from, top.section("from"));
  ALCOVE_TRY_ASSIGN(recipe.from, read_from(std::move(from), folder));
  ALCOVE_TRY_ASSIGN(Section python, top.section("python"));
  ALCOVE_TRY_ASSIGN(recipe.python, read_python(std::move(python), folder));
  ALCOVE_TRY_ASSIGN(Section modes, top.section("modes"));
  ALCOVE_TRY_ASSIGN(recipe.modes, read_modes(std::move(modes)));
  ALCOVE_TRY_ASSIGN(Section env, top.section("env"));
  ALCOVE_TRY_ASSIGN(recipe.envs, env.all_texts());
  ALCOVE_TRY(top.check_all_known());
  ALCOVE_TRY(check_names(recipe));
  return recipe;
}

}  // namespace

Result<Recipe> parse_recipe(std::string_view text, const std::string& folder) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const auto& at = parsed.error().source().begin;
    return fail(wrong(cat("line ", at.line, ": ", parsed.error().description())));
  }
  return read_recipe(parsed.table(), folder);
}

Result<Recipe> load_recipe(const std::string& folder) {
  const std::string path = folder + "/recipe.toml";
  ALCOVE_TRY_ASSIGN(const std::string text, image::read_file(path));
  auto recipe = parse_recipe(text, folder);
  if (!recipe) return fail(std::move(recipe).error().context(path));
  return recipe;
}

}  // namespace alcove::templates
