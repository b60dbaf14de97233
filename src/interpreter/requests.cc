// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/requests.h"

#include <boost/json/parse.hpp>

#include "base/strings.h"
#include "interpreter/ascii_json.h"

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

Error refused(std::string_view field, std::string_view type, std::string_view message) {
  std::string text = R"({"detail":[{"type":")";
  text += type;
  text += R"(","loc":["body")";
  if (!field.empty()) {
    text += ',';
    append_ascii_string(text, field);
  }
  text += R"(],"msg":)";
  append_ascii_string(text, message);
  text += "}]}";
  return Error(Code::kInvalidArgument, std::move(text));
}

Result<json::object> parse_object(std::string_view body) {
  json::error_code error;
  json::value value = json::parse({body.data(), body.size()}, error);
  if (error) return fail(refused("", "json_invalid", "JSON decode error"));
  if (!value.is_object()) {
    return fail(refused("", "model_attributes_type", "Input should be a valid object"));
  }
  return std::move(value.get_object());
}

Result<std::string> read_text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) {
    return fail(refused(key, "string_type", "Input should be a valid string"));
  }
  return std::string(value->get_string());
}

Result<std::map<std::string, std::string>> read_variables(const json::object& object) {
  std::map<std::string, std::string> variables;
  const json::value* value = object.if_contains("env_vars");
  if (value == nullptr || value->is_null()) return variables;
  if (!value->is_object()) {
    return fail(refused("env_vars", "dict_type", "Input should be a valid dictionary"));
  }
  for (const auto& [name, item] : value->get_object()) {
    if (!item.is_string()) {
      return fail(refused("env_vars", "string_type", "Input should be a valid string"));
    }
    const std::string_view text = item.get_string();
    constexpr std::string_view kNoName("=\0", 2);
    if (name.empty() || std::string_view(name).find_first_of(kNoName) != std::string_view::npos ||
        text.find('\0') != std::string_view::npos) {
      return fail(refused("env_vars", "value_error",
                          "A variable has a name without '=', and no NUL bytes"));
    }
    variables.emplace(name, text);
  }
  return variables;
}

}  // namespace

Result<ExecuteRequest> parse_execute_request(std::string_view body) {
  ALCOVE_TRY_ASSIGN(const json::object object, parse_object(body));
  const json::value* code = object.if_contains("code");
  if (code == nullptr) return fail(refused("code", "missing", "Field required"));
  if (!code->is_string()) {
    return fail(refused("code", "string_type", "Input should be a valid string"));
  }
  ExecuteRequest request;
  request.code = std::string(code->get_string());
  ALCOVE_TRY_ASSIGN(request.context_id, read_text(object, "context_id"));
  ALCOVE_TRY_ASSIGN(request.language, read_text(object, "language"));
  ALCOVE_TRY_ASSIGN(request.env_vars, read_variables(object));
  return request;
}

Result<ContextRequest> parse_context_request(std::string_view body) {
  ALCOVE_TRY_ASSIGN(const json::object object, parse_object(body));
  ContextRequest request;
  ALCOVE_TRY_ASSIGN(request.language, read_text(object, "language"));
  ALCOVE_TRY_ASSIGN(request.cwd, read_text(object, "cwd"));
  return request;
}

}  // namespace alcove::interpreter
