// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/remote_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/strings.h"
#include "cli/exec_messages.h"
#include "cli/standard_io.h"
#include "connect/client.h"
#include "connect/json_codec.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

constexpr size_t kPiece = 256 * 1024;
constexpr uint64_t kMaxErrorText = 64 * 1024;
constexpr uint64_t kMaxMessage = 1u << 20;
// A transfer that stands still for so long is given up.
constexpr std::chrono::seconds kStall{60};
// Fits into one command line.
constexpr size_t kPathsPerCommand = 200;

constexpr connect::EnumName kFileTypes[] = {{"FILE_TYPE_UNSPECIFIED", 0},
                                            {"FILE_TYPE_FILE", 1},
                                            {"FILE_TYPE_DIRECTORY", 2},
                                            {"FILE_TYPE_SYMLINK", 3}};

std::string path_message(std::string_view path) {
  return json::serialize(json::object{{"path", path}});
}

void extend_deadlines(http::ClientConnection& connection) {
  const auto deadline = std::chrono::steady_clock::now() + kStall;
  connection.stream().set_read_deadline(deadline);
  connection.stream().set_write_deadline(deadline);
}

Result<size_t> read_piece(int fd, std::span<char> buffer) {
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return fail_errno(errno, "read");
  }
}

Task<Error> refusal(http::ClientConnection& connection, int status) {
  auto text = co_await connection.body().read_all(kMaxErrorText);
  co_return call_error({.status = status, .headers = {}, .body = text ? *text : std::string()});
}

}  // namespace

Result<RemoteEntry> parse_entry(const json::object& entry) {
  RemoteEntry out;
  ALCOVE_TRY_ASSIGN(out.name, connect::read_string(entry, "name"));
  ALCOVE_TRY_ASSIGN(const int32_t type, connect::read_enum(entry, "type", kFileTypes));
  if (type == 1) out.kind = RemoteEntry::Kind::kFile;
  if (type == 2) out.kind = RemoteEntry::Kind::kDirectory;
  ALCOVE_TRY_ASSIGN(out.is_link, connect::read_bool(entry, "isSymlink"));
  ALCOVE_TRY_ASSIGN(out.size, connect::read_uint64(entry, "size"));
  ALCOVE_TRY_ASSIGN(const uint32_t mode, connect::read_uint32(entry, "mode"));
  out.mode = mode & 0777;
  return out;
}

Task<Result<std::optional<RemoteEntry>>> RemoteFiles::find(std::string path) {
  const auto reply = co_await agent_.call("filesystem.Filesystem/Stat", path_message(path));
  if (!reply && reply.error().code() == Code::kNotFound) co_return std::nullopt;
  if (!reply) co_return fail(reply.error());
  ALCOVE_CO_TRY_ASSIGN(const json::object* entry, connect::read_object(*reply, "entry"));
  if (entry == nullptr) co_return fail(Code::kInternal, "the sandbox's answer has no entry");
  ALCOVE_CO_TRY_ASSIGN(RemoteEntry parsed, parse_entry(*entry));
  co_return parsed;
}

Task<Result<std::vector<RemoteEntry>>> RemoteFiles::list(std::string path) {
  const std::string message = json::serialize(json::object{{"path", path}, {"depth", 1}});
  ALCOVE_CO_TRY_ASSIGN(const json::object reply,
                       co_await agent_.call("filesystem.Filesystem/ListDir", message));
  ALCOVE_CO_TRY_ASSIGN(const json::array* entries, connect::read_array(reply, "entries"));
  std::vector<RemoteEntry> out;
  if (entries == nullptr) co_return out;
  for (const json::value& value : *entries) {
    const json::object* object = value.if_object();
    if (object == nullptr) co_return fail(Code::kInternal, "the sandbox lists what is no entry");
    ALCOVE_CO_TRY_ASSIGN(RemoteEntry entry, parse_entry(*object));
    out.push_back(std::move(entry));
  }
  co_return out;
}

Task<Result<void>> RemoteFiles::make_dir(std::string path) {
  const auto made = co_await agent_.call("filesystem.Filesystem/MakeDir", path_message(path));
  if (!made && made.error().code() != Code::kAlreadyExists) co_return fail(made.error());
  co_return Result<void>();
}

Task<Result<void>> RemoteFiles::send_pieces(http::ClientConnection& connection, int fd,
                                            uint64_t size, const std::string& path,
                                            Progress& progress) {
  http::RequestHead head = agent_.head("POST", agent_.file_target(path));
  head.headers.add("Content-Type", "application/octet-stream");
  extend_deadlines(connection);
  ALCOVE_CO_TRY(co_await connection.write_head(agent_.http().complete(std::move(head)), size));
  const auto buffer = std::make_unique<char[]>(kPiece);
  for (uint64_t left = size; left > 0;) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(left, kPiece));
    ALCOVE_CO_TRY_ASSIGN(const size_t count, read_piece(fd, {buffer.get(), wanted}));
    if (count == 0) co_return fail(Code::kAborted, "the file became shorter while it was copied");
    extend_deadlines(connection);
    ALCOVE_CO_TRY(co_await connection.write_body({buffer.get(), count}));
    progress.add(count);
    left -= count;
  }
  co_return Result<void>();
}

Task<Result<void>> RemoteFiles::upload(int fd, uint64_t size, std::string path,
                                       Progress& progress) {
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await agent_.http().take());
  const auto sent = co_await send_pieces(connection, fd, size, path, progress);
  // A full disk is answered, and the connection closed, before everything was sent.
  if (!sent && sent.error().code() != Code::kUnavailable) co_return fail(sent.error());
  extend_deadlines(connection);
  const auto answer = co_await connection.read_head("POST");
  if (!answer) co_return fail(sent ? answer.error() : sent.error());
  if (answer->status != 200) co_return fail(co_await refusal(connection, answer->status));
  if (!sent) co_return fail(sent.error());
  ALCOVE_CO_TRY(co_await connection.body().read_all(kMaxErrorText));
  agent_.http().give_back(std::move(connection));
  co_return Result<void>();
}

Task<Result<void>> RemoteFiles::download(std::string path, int fd, Progress& progress) {
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await agent_.http().take());
  http::RequestHead head = agent_.head("GET", agent_.file_target(path));
  head.headers.add("Accept-Encoding", "identity");
  extend_deadlines(connection);
  ALCOVE_CO_TRY(
      co_await connection.write_head(agent_.http().complete(std::move(head)), /*length=*/0));
  ALCOVE_CO_TRY_ASSIGN(const http::ResponseHead answer, co_await connection.read_head("GET"));
  if (answer.status != 200) co_return fail(co_await refusal(connection, answer.status));
  const auto buffer = std::make_unique<char[]>(kPiece);
  for (;;) {
    extend_deadlines(connection);
    ALCOVE_CO_TRY_ASSIGN(const size_t count,
                         co_await connection.body().read({buffer.get(), kPiece}));
    if (count == 0) break;
    ALCOVE_CO_TRY(write_all(fd, {buffer.get(), count}));
    progress.add(count);
  }
  agent_.http().give_back(std::move(connection));
  co_return Result<void>();
}

Task<Result<void>> RemoteFiles::set_modes(
    const std::map<unsigned, std::vector<std::string>>& paths_by_mode) {
  for (const auto& [mode, paths] : paths_by_mode) {
    char octal[8];
    std::snprintf(octal, sizeof octal, "%04o", mode);
    for (size_t first = 0; first < paths.size(); first += kPathsPerCommand) {
      std::vector<std::string> command{"chmod", octal, "--"};
      const size_t last = std::min(paths.size(), first + kPathsPerCommand);
      command.insert(command.end(), paths.begin() + static_cast<ptrdiff_t>(first),
                     paths.begin() + static_cast<ptrdiff_t>(last));
      ALCOVE_CO_TRY_ASSIGN(const int code, co_await run(std::move(command)));
      if (code != 0) co_return fail(Code::kInternal, cat("chmod ended with ", code));
    }
  }
  co_return Result<void>();
}

Task<Result<int>> RemoteFiles::run(std::vector<std::string> command) {
  ExecOptions options;
  options.command = std::move(command);
  std::string body;
  connect::append_envelope(body, start_message(options, Input::kNone));
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await agent_.http().take());
  extend_deadlines(connection);
  http::RequestHead head = agent_.call_head("process.Process/Start", "application/connect+json");
  ALCOVE_CO_TRY(
      co_await connection.write_head(agent_.http().complete(std::move(head)), body.size(), body));
  ALCOVE_CO_TRY_ASSIGN(const http::ResponseHead answer, co_await connection.read_head("POST"));
  if (answer.status != 200) co_return fail(co_await refusal(connection, answer.status));
  connect::StreamReader reader(connection.body(), kMaxMessage);
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(const auto message, co_await reader.next());
    if (!message) co_return fail(Code::kDataLoss, "the command's end is missing");
    ALCOVE_CO_TRY_ASSIGN(const ProcessEvent event, parse_event(*message));
    if (const auto* ended = std::get_if<Ended>(&event)) co_return ended->exit_code;
  }
}

}  // namespace alcove::cli
