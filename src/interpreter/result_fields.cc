// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/result_fields.h"

#include <array>
#include <string_view>
#include <utility>

#include "interpreter/ascii_json.h"

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

struct Field {
  std::string_view mime_type;
  std::string_view name;
};

// In the order in which the fields stand in a result.
constexpr std::array<Field, 12> kFields = {{{"text/plain", "text"},
                                            {"text/html", "html"},
                                            {"text/markdown", "markdown"},
                                            {"image/svg+xml", "svg"},
                                            {"image/png", "png"},
                                            {"image/jpeg", "jpeg"},
                                            {"application/pdf", "pdf"},
                                            {"text/latex", "latex"},
                                            {"application/json", "json"},
                                            {"application/javascript", "javascript"},
                                            {"e2b/data", "data"},
                                            {"e2b/chart", "chart"}}};

bool is_field(std::string_view mime_type) {
  for (const Field& field : kFields) {
    if (field.mime_type == mime_type) return true;
  }
  return false;
}

// A string's repr arrives as the string: one pair of equal quotes around it is taken off.
std::string_view without_quotes(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return text;
  if (text.front() != '\'' && text.front() != '"') return text;
  return text.substr(1, text.size() - 2);
}

void append_display(std::string& line, const Display& display) {
  for (const Field& field : kFields) {
    const auto found = display.data.find(field.mime_type);
    if (found == display.data.end()) continue;
    line += "\"";
    line += field.name;
    line += "\": ";
    if (field.name == "text" && found->value().is_string()) {
      append_ascii_string(line, without_quotes(found->value().get_string()));
    } else {
      append_ascii_json(line, found->value());
    }
    line += ", ";
  }
  line += "\"extra\": {";
  bool first = true;
  for (const auto& [mime_type, value] : display.data) {
    if (is_field(mime_type)) continue;
    if (!first) line += ", ";
    first = false;
    append_ascii_string(line, mime_type);
    line += ": ";
    append_ascii_json(line, value);
  }
  line += "}, \"is_main_result\": ";
  line += display.kind == Display::Kind::kValueOfLastExpression ? "true" : "false";
}

struct LineWriter {
  const std::string& timestamp;
  std::string line = "{\"type\": \"";

  void member(std::string_view name, std::string_view value) {
    line += ", \"";
    line += name;
    line += "\": ";
    append_ascii_string(line, value);
  }
  void operator()(const RunStarted& started) {
    line += "number_of_executions\", \"execution_count\": ";
    line += std::to_string(started.execution_count);
  }
  void operator()(const StreamOutput& output) {
    line += output.name == StreamOutput::Name::kStdout ? "stdout\"" : "stderr\"";
    member("text", output.text);
    member("timestamp", timestamp);
  }
  void operator()(const Display& display) {
    line += "result\", ";
    append_display(line, display);
  }
  void operator()(const RunError& error) {
    line += "error\"";
    member("name", error.name);
    member("value", error.value);
    member("traceback", error.traceback);
  }
};

}  // namespace

std::string event_line(const RunEvent& event, const std::string& timestamp) {
  LineWriter writer{timestamp};
  std::visit(writer, event);
  writer.line += "}\n";
  return std::move(writer.line);
}

std::string keepalive_line() { return "{\"type\": \"keepalive\"}\n"; }
std::string end_line() { return "{\"type\": \"end_of_execution\"}\n"; }

}  // namespace alcove::interpreter
