// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/filesystem_service.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "agent/filesystem_messages.h"
#include "agent/fs_operations.h"
#include "agent/paths.h"
#include "agent/process_messages.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr uint64_t kMaxMessage = 1ull << 20;

constexpr std::array<std::string_view, 5> kFileMethods = {"Stat", "ListDir", "MakeDir", "Move",
                                                          "Remove"};
constexpr std::array<std::string_view, 3> kWatcherMethods = {"CreateWatcher", "GetWatcherEvents",
                                                             "RemoveWatcher"};

template <size_t count>
bool contains(const std::array<std::string_view, count>& methods, std::string_view method) {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

}  // namespace

Task<void> FilesystemService::handle(http::Exchange& exchange, std::string_view method,
                                     std::optional<std::string> user) {
  if (method == "WatchDir") {
    co_await watch(exchange, std::move(user));
    co_return;
  }
  const bool on_watcher = contains(kWatcherMethods, method);
  if (!on_watcher && !contains(kFileMethods, method)) {
    co_await connect::refuse_unknown_method(exchange, "filesystem.Filesystem", method);
    co_return;
  }
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kUnary);
  if (!call) co_return;
  auto message = co_await connect::read_unary(exchange, kMaxMessage);
  if (!message) {
    co_await connect::respond_error(exchange, *call, message.error());
    co_return;
  }
  // A watcher's directory may lie anywhere.
  auto answer = on_watcher
                    ? co_await while_client_waits(
                          exchange, call->deadline,
                          call_watcher(call->codec, method, *std::move(message), user))
                    : co_await call_file_method(exchange, *call, method, *std::move(message), user);
  if (answer) {
    co_await connect::respond_unary(exchange, *call, *std::move(answer));
  } else {
    co_await connect::respond_error(exchange, *call, answer.error());
  }
}

Task<Result<std::string>> FilesystemService::call_file_method(
    http::Exchange& exchange, connect::CallInfo call, std::string_view method, std::string message,
    std::optional<std::string> user_name) {
  ALCOVE_CO_TRY_ASSIGN(User user, users_.find(user_name ? *user_name : state_.default_user()));
  const PathBase base = state_.path_base(user);
  const auto accounts = users_.accounts();
  const connect::Codec codec = call.codec;
  if (method == "Move") {
    ALCOVE_CO_TRY_ASSIGN(const MoveRequest request, decode_move(codec, message));
    ALCOVE_CO_TRY_ASSIGN(std::string source, resolve_path(request.source, base));
    ALCOVE_CO_TRY_ASSIGN(std::string destination, resolve_path(request.destination, base));
    const FileThreads from_threads = pools_.at(source);
    const FileThreads threads = from_threads.may_hang ? from_threads : pools_.at(destination);
    auto job = [codec, accounts, from = std::move(source), to = std::move(destination),
                owner = std::move(user)]() -> Result<std::string> {
      ALCOVE_TRY_ASSIGN(const EntryInfo entry, move_entry(from, to, owner, *accounts));
      return encode_entry(codec, entry);
    };
    co_return co_await FileJobs(threads, exchange, call.deadline).run(std::move(job));
  }
  if (method == "ListDir") {
    ALCOVE_CO_TRY_ASSIGN(ListDirRequest request, decode_list_dir(codec, message));
    ALCOVE_CO_TRY_ASSIGN(std::string path, resolve_path(request.path, base));
    co_return co_await list(exchange, call, std::move(path), request.depth);
  }
  ALCOVE_CO_TRY_ASSIGN(const std::string given, decode_path(codec, message));
  ALCOVE_CO_TRY_ASSIGN(std::string path, resolve_path(given, base));
  const FileThreads threads = pools_.at(path);
  FileJobs jobs(threads, exchange, call.deadline);
  if (method == "Stat") {
    auto job = [codec, accounts, target = std::move(path)]() -> Result<std::string> {
      ALCOVE_TRY_ASSIGN(const EntryInfo entry, read_entry(target, *accounts));
      return encode_entry(codec, entry);
    };
    // To a thread and back takes longer than the look itself.
    if (!threads.may_hang) co_return job();
    co_return co_await jobs.run(std::move(job));
  }
  if (method == "MakeDir") {
    auto job = [codec, accounts, target = std::move(path),
                owner = std::move(user)]() -> Result<std::string> {
      ALCOVE_TRY_ASSIGN(const EntryInfo entry, make_directory(target, owner, *accounts));
      return encode_entry(codec, entry);
    };
    co_return co_await jobs.run(std::move(job));
  }
  // Remove: it follows no links, and what is mounted below is refused by the kernel.
  auto job = [codec, target = std::move(path)]() -> Result<std::string> {
    ALCOVE_TRY(remove_entry(target));
    return encode_empty(codec);
  };
  co_return co_await jobs.run(std::move(job));
}

Task<Result<std::string>> FilesystemService::list(http::Exchange& exchange, connect::CallInfo call,
                                                  std::string path, uint32_t depth) {
  const auto job = [codec = call.codec, accounts = users_.accounts(), path,
                    depth](Links links) -> Result<std::string> {
    ALCOVE_TRY_ASSIGN(const auto entries, list_directory(path, depth, *accounts, links));
    return encode_entries(codec, entries);
  };
  const auto walk = depth > 1 ? MountPoints::Walk::kTree : MountPoints::Walk::kEntries;
  const FileThreads threads = pools_.below(path, walk);
  if (!threads.may_hang) {
    auto near_job = [job] { return job(Links::kOnRootMount); };
    auto listed = co_await FileJobs(threads, exchange, call.deadline).run(std::move(near_job));
    if (listed || listed.error().error_number() != EXDEV) co_return listed;
  }
  auto far_job = [job] { return job(Links::kAnywhere); };
  co_return co_await FileJobs(pools_.anywhere(), exchange, call.deadline).run(std::move(far_job));
}

Task<void> FilesystemService::watch(http::Exchange& exchange, std::optional<std::string> user) {
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kStream);
  if (!call) co_return;
  const auto message = co_await connect::read_single(exchange, kMaxMessage);
  auto request = message ? read_watch(call->codec, *message, user) : fail(message.error());
  if (!request) {
    connect::StreamWriter writer(exchange, *call);
    (void)co_await writer.finish(request.error());
    co_return;
  }
  co_await stream_watch(exchange, *call, pools_, *std::move(request), users_.accounts());
}

Result<WatchRequest> FilesystemService::read_watch(connect::Codec codec, std::string_view message,
                                                   const std::optional<std::string>& user_name) {
  ALCOVE_TRY_ASSIGN(const User user, users_.find(user_name.value_or(state_.default_user())));
  ALCOVE_TRY_ASSIGN(WatchRequest request, decode_watch(codec, message));
  ALCOVE_TRY_ASSIGN(request.path, resolve_path(request.path, state_.path_base(user)));
  return request;
}

Task<Result<std::string>> FilesystemService::call_watcher(connect::Codec codec,
                                                          std::string_view method,
                                                          std::string message,
                                                          std::optional<std::string> user) {
  if (method == "CreateWatcher") {
    ALCOVE_CO_TRY_ASSIGN(WatchRequest request, read_watch(codec, message, user));
    ALCOVE_CO_TRY_ASSIGN(const std::string id,
                         co_await watchers_.create(std::move(request), users_.accounts()));
    co_return encode_watcher_id(codec, id);
  }
  if (method == "GetWatcherEvents") {
    ALCOVE_CO_TRY_ASSIGN(const std::string id, decode_watcher_id(codec, message));
    ALCOVE_CO_TRY_ASSIGN(const auto events, co_await watchers_.take(id));
    co_return encode_events(codec, events);
  }
  // RemoveWatcher.
  ALCOVE_CO_TRY_ASSIGN(const std::string id, decode_watcher_id(codec, message));
  ALCOVE_CO_TRY(watchers_.remove(id));
  co_return encode_empty(codec);
}

}  // namespace alcove::agent
