// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <chrono>
#include <set>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/strings.h"
#include "base/time_format.h"
#include "cli/sandbox_commands.h"
#include "cli/server.h"
#include "cli/views.h"
#include "net/timer.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kLogInterval{500};
constexpr std::chrono::seconds kMetricInterval{2};

// What is read again and again: where it is, how one entry looks and how it is found again.
struct Source {
  std::string_view path;
  // The member of the answer that holds the entries; empty: the answer is the array.
  std::string_view member;
  std::string (*show)(const json::object&);
  // The `start` from which the server is asked again: the time of the last entry, in the
  // endpoint's unit.
  int64_t (*start)(const json::object&);
  std::chrono::milliseconds interval;
};

int64_t log_start(const json::object& entry) {
  const auto time = parse_rfc3339(text_field(entry, "timestamp"));
  if (!time) return 0;
  return std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count();
}

int64_t metric_start(const json::object& sample) { return number_field(sample, "timestampUnix"); }

constexpr Source kLogs{"/logs", "logEntries", show_log_entry, log_start, kLogInterval};
constexpr Source kMetrics{"/metrics", "", show_metric, metric_start, kMetricInterval};

const json::array& entries_of(const json::value& body, std::string_view member) {
  static const json::array kNone;
  const json::value* list = &body;
  if (!member.empty()) {
    const json::object* object = body.if_object();
    list = object != nullptr ? object->if_contains(member) : nullptr;
  }
  const json::array* found = list != nullptr ? list->if_array() : nullptr;
  return found != nullptr ? *found : kNone;
}

Result<void> print_entry(const Source& source, const json::object& entry, Format format) {
  return format == Format::kJson ? print_json(entry) : print(source.show(entry));
}

// Prints what comes after the first answer. Asks from the last entry's own time on, because more
// may have happened in that instant, and leaves out what it has seen of it.
Task<Result<int>> follow(Server& server, const Source& source, const WatchOptions& options,
                         json::array seen) {
  int64_t start = 0;
  std::set<std::string> at_start;
  for (;;) {
    for (const json::value& value : seen) {
      const json::object* entry = value.if_object();
      if (entry == nullptr) continue;
      const int64_t time = source.start(*entry);
      if (time < start) continue;
      if (time > start) at_start.clear();
      start = time;
      at_start.insert(json::serialize(*entry));
    }
    co_await net::sleep_for(source.interval);
    // Asked before the entries, so that the last ones are shown.
    const auto alive = co_await server.call_sandbox("GET", options.id, "");
    if (!alive && alive.error().code() != Code::kNotFound) co_return fail(alive.error());
    auto reply = co_await server.call_sandbox(
        "GET", options.id,
        start == 0 ? std::string(source.path) : cat(source.path, "?start=", start));
    if (!reply && reply.error().code() == Code::kNotFound) co_return kSuccess;
    if (!reply) co_return fail(std::move(reply).error());
    seen = entries_of(reply->body, source.member);
    for (const json::value& value : seen) {
      const json::object* entry = value.if_object();
      if (entry == nullptr || at_start.contains(json::serialize(*entry))) continue;
      ALCOVE_CO_TRY(print_entry(source, *entry, options.format));
    }
    if (!alive) co_return kSuccess;
  }
}

Task<Result<int>> watch(Server& server, const Source& source, const WatchOptions& options) {
  ALCOVE_CO_TRY_ASSIGN(const ApiReply reply,
                       co_await server.call_sandbox("GET", options.id, std::string(source.path)));
  const json::array& entries = entries_of(reply.body, source.member);
  if (options.format == Format::kText && source.show == show_metric) {
    ALCOVE_CO_TRY(print(metrics_header()));
  }
  size_t first = 0;
  if (options.last > 0 && entries.size() > options.last) first = entries.size() - options.last;
  for (size_t i = first; i < entries.size(); ++i) {
    if (const json::object* entry = entries[i].if_object()) {
      ALCOVE_CO_TRY(print_entry(source, *entry, options.format));
    }
  }
  if (!options.follow) co_return kSuccess;
  co_return co_await follow(server, source, options, entries);
}

}  // namespace

Result<int> show_logs(const ClientFlags& flags, const WatchOptions& options) {
  return with_server(flags, [&](Server& server) { return watch(server, kLogs, options); });
}

Result<int> show_metrics(const ClientFlags& flags, const WatchOptions& options) {
  return with_server(flags, [&](Server& server) { return watch(server, kMetrics, options); });
}

}  // namespace alcove::cli
