// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_kernel_spec.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// They come from the template or from the sandbox's user.
constexpr size_t kMostSpecBytes = size_t{1} << 20;
constexpr size_t kMostKernels = 1000;

std::optional<std::string> read_small_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSpecBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || static_cast<size_t>(file.gcount()) > kMostSpecBytes) return {};
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string value_of(const std::map<std::string, std::string>& environment,
                     const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// A kernel's name is [A-Za-z0-9._-]; anything else, "../x" above all, is no kernel.
bool is_kernel_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

std::vector<std::string> names_in(const std::string& dir) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (is_kernel_name(name)) names.insert(std::move(name));
    if (names.size() == kMostKernels) break;
  }
  return {names.begin(), names.end()};
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

std::vector<std::string> jupyter_kernel_dirs(
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> dirs;
  const auto add = [&dirs](std::string dir) {
    if (std::find(dirs.begin(), dirs.end(), dir) == dirs.end()) dirs.push_back(std::move(dir));
  };
  const std::string jupyter_path = value_of(environment, "JUPYTER_PATH");
  for (const std::string_view part : split(jupyter_path, ':')) {
    if (!part.empty()) add(cat(part, "/kernels"));
  }
  const std::string home = value_of(environment, "HOME");
  add(cat(home.empty() ? "/root" : home, "/.local/share/jupyter/kernels"));
  if (const std::string prefix = value_of(environment, "VIRTUAL_ENV"); !prefix.empty()) {
    add(cat(prefix, "/share/jupyter/kernels"));
  }
  // Jupyter's sys.prefix: that of the python3 which the user would start.
  const std::string path = value_of(environment, "PATH");
  for (const std::string_view part : split(path, ':')) {
    std::error_code error;
    if (!part.starts_with('/') || !part.ends_with("/bin")) continue;
    if (!fs::exists(cat(part, "/python3"), error)) continue;
    add(cat(part.substr(0, part.size() - std::string_view("/bin").size()),
            "/share/jupyter/kernels"));
    break;
  }
  add("/usr/local/share/jupyter/kernels");
  add("/usr/share/jupyter/kernels");
  return dirs;
}

Result<JupyterKernelSpec> parse_jupyter_kernel_spec(std::string_view text, std::string name,
                                                    std::string resource_dir) {
  json::error_code error;
  const json::value document = json::parse(text, error);
  if (error || !document.is_object()) {
    return fail(Code::kInvalidArgument, cat("the kernel.json of ", name, " is no JSON object"));
  }
  const json::object& object = document.get_object();
  JupyterKernelSpec spec;
  spec.name = std::move(name);
  spec.resource_dir = std::move(resource_dir);
  const json::value* argv = object.if_contains("argv");
  if (argv == nullptr || !argv->is_array() || argv->get_array().empty()) {
    return fail(Code::kInvalidArgument, cat("the kernel.json of ", spec.name, " has no argv"));
  }
  for (const json::value& word : argv->get_array()) {
    if (!word.is_string()) {
      return fail(Code::kInvalidArgument, cat("argv of kernel ", spec.name, " is not of strings"));
    }
    spec.argv.emplace_back(word.get_string());
  }
  spec.language = text_of(object, "language");
  if (const json::value* env = object.if_contains("env"); env != nullptr && env->is_object()) {
    for (const auto& [key, value] : env->get_object()) {
      if (value.is_string()) spec.env.emplace(key, value.get_string());
    }
  }
  if (text_of(object, "interrupt_mode") == "message") {
    spec.interrupt_mode = JupyterKernelSpec::InterruptMode::kMessage;
  }
  return spec;
}

Result<JupyterKernelSpec> find_jupyter_kernel(const std::vector<std::string>& dirs,
                                              std::string_view language) {
  std::optional<JupyterKernelSpec> by_language;
  for (const std::string& dir : dirs) {
    for (const std::string& name : names_in(dir)) {
      const std::string resource_dir = cat(dir, '/', name);
      const auto text = read_small_file(cat(resource_dir, "/kernel.json"));
      if (!text) continue;
      auto spec = parse_jupyter_kernel_spec(*text, name, resource_dir);
      if (!spec) continue;
      if (equal_ignoring_case(name, language)) return std::move(*spec);
      if (!by_language && equal_ignoring_case(spec->language, language)) by_language = *spec;
    }
  }
  if (by_language) return std::move(*by_language);
  return fail(Code::kNotFound, cat("No such kernel: ", language));
}

std::vector<std::string> jupyter_kernel_command(const JupyterKernelSpec& spec,
                                                const std::string& connection_file) {
  std::vector<std::string> command;
  for (const std::string& word : spec.argv) {
    command.push_back(replaced(replaced(word, "{resource_dir}", spec.resource_dir),
                               "{connection_file}", connection_file));
  }
  return command;
}

}  // namespace alcove::interpreter
