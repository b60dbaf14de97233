// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/log_entry.h"

#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace alcove::node {
namespace {

namespace json = boost::json;

constexpr LogLevel kLevels[] = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn,
                                LogLevel::kError};

std::string encode_entry(const LogEntry& entry) {
  json::object fields;
  for (const auto& [name, value] : entry.fields) fields.emplace(name, value);
  return json::serialize(json::object{{"time", entry.time.time_since_epoch().count()},
                                      {"level", level_name(entry.level)},
                                      {"message", entry.message},
                                      {"fields", std::move(fields)}});
}

std::optional<LogEntry> read_entry(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return {};
  const json::value* time = object->if_contains("time");
  const json::value* level = object->if_contains("level");
  const json::value* message = object->if_contains("message");
  const json::value* fields = object->if_contains("fields");
  if (time == nullptr || !time->is_int64() || level == nullptr || !level->is_string() ||
      message == nullptr || !message->is_string() || fields == nullptr || !fields->is_object()) {
    return {};
  }
  LogEntry entry;
  entry.time = WallTime(WallTime::duration(time->get_int64()));
  for (const LogLevel known : kLevels) {
    if (level->get_string() == level_name(known)) entry.level = known;
  }
  entry.message = message->get_string();
  for (const auto& [name, text] : fields->get_object()) {
    if (text.is_string()) entry.fields.emplace(name, text.get_string());
  }
  return entry;
}

bool is_about_a_process(const LogEntry& entry) {
  const auto logger = entry.fields.find("logger");
  return logger != entry.fields.end() && logger->second == "process";
}

}  // namespace

std::string encode_log(const Log& log, size_t max_bytes) {
  std::vector<std::string> lines;
  size_t bytes = 0;
  bool full = false;
  for (auto entry = log.rbegin(); entry != log.rend(); ++entry) {
    if (full && is_about_a_process(*entry)) continue;
    std::string line = encode_entry(*entry);
    bytes += line.size() + 1;
    full = bytes > max_bytes;
    if (full && is_about_a_process(*entry)) continue;
    lines.push_back(std::move(line));
  }
  std::string out = "[";
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (out.size() > 1) out += ',';
    out += *line;
  }
  return out + "]";
}

Result<Log> decode_log(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_array()) return fail(Code::kDataLoss, "the log is damaged");
  Log log;
  log.reserve(value.get_array().size());
  for (const json::value& each : value.get_array()) {
    auto entry = read_entry(each);
    if (!entry) return fail(Code::kDataLoss, "the log has a damaged line");
    log.push_back(*std::move(entry));
  }
  return log;
}

}  // namespace alcove::node
