// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/views.h"

#include <cstdio>
#include <vector>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/strings.h"
#include "cli/printable.h"
#include "cli/server.h"
#include "cli/table.h"
#include "cli/units.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

const json::object& object_of(const json::value& value) {
  static const json::object kEmpty;
  const json::object* object = value.if_object();
  return object != nullptr ? *object : kEmpty;
}

std::string value_text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

// "a=1 b=2"
std::string pairs_text(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  std::string out;
  if (found == nullptr) return out;
  for (const auto& [key, value] : object_of(*found)) {
    out += cat(out.empty() ? "" : " ", std::string_view(key), "=", value_text(value));
  }
  return out;
}

std::string mebibytes(const json::object& object, std::string_view name) {
  const int64_t count = number_field(object, name);
  return count <= 0 ? "" : format_bytes(static_cast<uint64_t>(count) << 20);
}

std::string bytes(const json::object& object, std::string_view name) {
  const int64_t count = number_field(object, name);
  return count < 0 ? "-" : format_bytes(static_cast<uint64_t>(count));
}

std::string time_and_distance(const json::object& object, std::string_view name, WallTime now) {
  const std::string time = text_field(object, name);
  return time.empty() ? "" : cat(time, " (", format_when(time, now), ")");
}

// What a sandbox was made from, as its creator would say it.
std::string template_name(const json::object& sandbox) {
  const std::string alias = text_field(sandbox, "alias");
  return alias.empty() ? text_field(sandbox, "templateID") : alias;
}

}  // namespace

std::string show_sandboxes(const json::array& sandboxes, WallTime now) {
  Table table({"SANDBOX", "TEMPLATE", "STATE", "CPUS", "MEMORY", "STARTED", "ENDS", "METADATA"});
  for (const json::value& value : sandboxes) {
    const json::object& sandbox = object_of(value);
    table.add({text_field(sandbox, "sandboxID"), template_name(sandbox),
               text_field(sandbox, "state"), std::to_string(number_field(sandbox, "cpuCount")),
               mebibytes(sandbox, "memoryMB"), format_when(text_field(sandbox, "startedAt"), now),
               format_when(text_field(sandbox, "endAt"), now), pairs_text(sandbox, "metadata")});
  }
  return table.text();
}

std::string show_sandbox(const json::object& sandbox, WallTime now) {
  const json::value* internet = sandbox.if_contains("allowInternetAccess");
  const bool offline = internet != nullptr && internet->is_bool() && !internet->get_bool();
  const std::pair<const char*, std::string> facts[] = {
      {"sandbox", text_field(sandbox, "sandboxID")},
      {"state", text_field(sandbox, "state")},
      {"template", cat(template_name(sandbox), " (", text_field(sandbox, "templateID"), ")")},
      {"started", time_and_distance(sandbox, "startedAt", now)},
      {"ends", time_and_distance(sandbox, "endAt", now)},
      {"cpus", std::to_string(number_field(sandbox, "cpuCount"))},
      {"memory", mebibytes(sandbox, "memoryMB")},
      {"disk", mebibytes(sandbox, "diskSizeMB")},
      {"internet", offline ? "no" : "yes"},
      {"isolation", text_field(sandbox, "isolation")},
      {"envd", text_field(sandbox, "envdVersion")},
      {"metadata", pairs_text(sandbox, "metadata")},
  };
  std::string out;
  for (const auto& [name, value] : facts) {
    if (value.empty()) continue;
    const std::string label = cat(name, ":");
    out += cat(label, std::string(11 - label.size(), ' '), printable(value), "\n");
  }
  return out;
}

std::string show_templates(const json::array& templates, WallTime now) {
  Table table({"TEMPLATE", "ID", "CPUS", "MEMORY", "DISK", "STATUS", "UPDATED"});
  for (const json::value& value : templates) {
    const json::object& entry = object_of(value);
    std::vector<std::string> names;
    if (const json::value* list = entry.if_contains("names"); list != nullptr && list->is_array()) {
      for (const json::value& name : list->get_array()) names.push_back(value_text(name));
    }
    table.add({join(names, ", "), text_field(entry, "templateID"),
               std::to_string(number_field(entry, "cpuCount")), mebibytes(entry, "memoryMB"),
               mebibytes(entry, "diskSizeMB"), text_field(entry, "buildStatus"),
               format_when(text_field(entry, "updatedAt"), now)});
  }
  return table.text();
}

namespace {

std::string metric_line(std::string_view time, std::string_view cpu, std::string_view memory,
                        std::string_view cache, std::string_view disk) {
  const std::pair<std::string_view, size_t> cells[] = {
      {time, 28}, {cpu, 8}, {memory, 22}, {cache, 12}};
  std::string out;
  for (const auto& [text, width] : cells) {
    out += cat(text, std::string(text.size() < width ? width - text.size() : 1, ' '));
  }
  return cat(out, disk, "\n");
}

}  // namespace

std::string metrics_header() { return metric_line("TIME", "CPU", "MEMORY", "CACHE", "DISK"); }

std::string show_metric(const json::object& sample) {
  const json::value* used = sample.if_contains("cpuUsedPct");
  boost::system::error_code error;
  const double percent = used != nullptr ? used->to_number<double>(error) : 0;
  char cpu[32];
  std::snprintf(cpu, sizeof cpu, "%.1f%%", percent);
  const auto of_total = [&](std::string_view part, std::string_view total) {
    return cat(bytes(sample, part), " / ", bytes(sample, total));
  };
  return metric_line(printable(text_field(sample, "timestamp")), cpu,
                     of_total("memUsed", "memTotal"), bytes(sample, "memCache"),
                     of_total("diskUsed", "diskTotal"));
}

std::string show_log_entry(const json::object& entry) {
  std::string line = text_field(entry, "timestamp");
  std::string level = text_field(entry, "level");
  for (char& c : level) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  level.resize(std::max(level.size(), size_t{5}), ' ');
  line += cat("  ", level, "  ", text_field(entry, "message"));
  const std::string fields = pairs_text(entry, "fields");
  if (!fields.empty()) line += cat("  ", fields);
  return printable(line) + "\n";
}

}  // namespace alcove::cli
