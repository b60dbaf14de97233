// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/download.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "agent/byte_ranges.h"
#include "agent/content_sniff.h"
#include "agent/download_rules.h"
#include "agent/file_io.h"
#include "agent/gzip.h"
#include "agent/http_date.h"
#include "agent/media_type.h"
#include "agent/paths.h"
#include "agent/rest.h"
#include "base/ids.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

// Files up to this size are read at once and sent in one packet.
constexpr size_t kSmallFile = 64 * 1024;
constexpr size_t kReadSize = 256 * 1024;
constexpr size_t kSniffSize = 512;
constexpr long kXfsMagic = 0x58465342;

// An opened file, or the answer that says why not.
struct Opened {
  std::optional<http::Response> refusal;
  // Closed already if all was read.
  UniqueFd fd;
  // Of a regular file whose size can be trusted; files of procfs say 0.
  std::optional<uint64_t> size;
  int64_t modified = 0;
  // Reading does not depend on a program that may hang, so the loop itself may do it.
  bool local = false;
  // The first bytes; all of them if `complete`.
  std::string beginning;
  bool complete = false;
};

bool is_local(int fd) {
  struct statfs info{};
  if (::fstatfs(fd, &info) != 0) return false;
  const auto type = static_cast<long>(info.f_type);
  return type == OVERLAYFS_SUPER_MAGIC || type == EXT4_SUPER_MAGIC || type == kXfsMagic ||
         type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

Opened refuse(int status, std::string_view message) {
  Opened opened;
  opened.refusal = rest_error(status, message);
  return opened;
}

// Blocks.
Opened open_download(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return refuse(404, cat("path '", path, "' does not exist"));
    return refuse(500, Error::from_errno(errno, cat("stat '", path, "'")).message());
  }
  if (S_ISDIR(info.st_mode)) return refuse(400, cat("path '", path, "' is a directory"));
  // O_NONBLOCK: a fifo without a writer is empty instead of a wait for ever.
  auto fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd || ::fstat(fd->get(), &info) != 0) {
    return refuse(500, cat("cannot open '", path, "'"));
  }
  Opened opened;
  opened.fd = *std::move(fd);
  opened.modified = info.st_mtim.tv_sec;
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (S_ISREG(info.st_mode) && size > 0) {
    opened.size = size;
    opened.local = is_local(opened.fd.get());
  }
  const bool whole = !opened.size || size <= kSmallFile;
  const size_t wanted = whole ? kSmallFile + 1 : kSniffSize;
  opened.beginning.resize(wanted);
  size_t have = 0;
  while (have < wanted) {
    const ssize_t count = ::pread(opened.fd.get(), opened.beginning.data() + have, wanted - have,
                                  static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ESPIPE || errno == EAGAIN) && have == 0) {
      // No offsets in a fifo or a terminal: read as it comes.
      const auto direct = read_once(opened.fd.get(), opened.beginning.data(), wanted);
      have = direct.value_or(0);
      opened.complete = have == 0;
      break;
    }
    if (count < 0) return refuse(500, Error::from_errno(errno, cat("read '", path, "'")).message());
    if (count == 0) {
      opened.complete = true;
      break;
    }
    have += static_cast<size_t>(count);
  }
  opened.beginning.resize(have);
  if (opened.complete) {
    opened.size = have;
    opened.fd.reset();
  }
  return opened;
}

// One piece of a file, read on the pool.
Task<Result<std::string>> read_piece(FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                                     std::optional<uint64_t> offset, size_t limit) {
  auto job = [file = std::move(fd), offset, limit]() -> Result<std::string> {
    std::string piece(limit, '\0');
    for (;;) {
      const ssize_t count =
          offset ? ::pread(file->get(), piece.data(), limit, static_cast<off_t>(*offset))
                 : ::read(file->get(), piece.data(), limit);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN) return fail_errno(errno, "read");
      piece.resize(count < 0 ? 0 : static_cast<size_t>(count));
      return piece;
    }
  };
  return jobs.run(std::move(job));
}

// Bytes of the file as part of the body. False if the connection was cut, because the file cannot
// be read any more: the head has been sent.
Task<bool> send_bytes(http::Exchange& exchange, FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                      ByteRange range, bool local) {
  if (local) {
    if (co_await exchange.send_file(fd->get(), range.offset, range.count)) co_return true;
    exchange.abort();
    co_return false;
  }
  while (range.count > 0) {
    const size_t limit = static_cast<size_t>(std::min<uint64_t>(range.count, kReadSize));
    const auto piece = co_await read_piece(jobs, fd, range.offset, limit);
    if (!piece || piece->empty() || !co_await exchange.write(*piece)) {
      exchange.abort();
      co_return false;
    }
    range.offset += piece->size();
    range.count -= piece->size();
  }
  co_return true;
}

Task<void> send_range(http::Exchange& exchange, FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                      http::ResponseHead head, const Opened& opened, ByteRange range) {
  if (opened.complete) {
    (void)co_await exchange.respond(
        {head.status, std::move(head.headers),
         opened.beginning.substr(range.offset, static_cast<size_t>(range.count))});
    co_return;
  }
  if (!co_await exchange.start(std::move(head), range.count)) co_return;
  if (co_await send_bytes(exchange, jobs, fd, range, opened.local)) {
    (void)co_await exchange.finish();
  }
}

Task<void> send_parts(http::Exchange& exchange, FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                      http::ResponseHead head, const Opened& opened, RangeParts parts) {
  head.headers.set("Content-Type", parts.content_type());
  if (!co_await exchange.start(std::move(head), parts.length())) co_return;
  for (size_t i = 0; i < parts.ranges().size(); ++i) {
    const ByteRange range = parts.ranges()[i];
    if (!co_await exchange.write(parts.head(i))) co_return;
    if (opened.complete) {
      const auto bytes = std::string_view(opened.beginning).substr(range.offset, range.count);
      if (!co_await exchange.write(bytes)) co_return;
    } else if (!co_await send_bytes(exchange, jobs, fd, range, opened.local)) {
      co_return;
    }
  }
  (void)co_await exchange.finish(parts.end());
}

// Files without a known size: read to their end.
Task<void> send_until_end(http::Exchange& exchange, FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                          std::string beginning, bool seekable) {
  if (!co_await exchange.write(beginning)) co_return;
  uint64_t offset = beginning.size();
  for (;;) {
    const auto piece = co_await read_piece(
        jobs, fd, seekable ? std::optional<uint64_t>(offset) : std::nullopt, kReadSize);
    if (!piece) {
      exchange.abort();
      co_return;
    }
    if (piece->empty()) break;
    offset += piece->size();
    if (!co_await exchange.write(*piece)) co_return;
  }
  (void)co_await exchange.finish();
}

Task<void> send_gzip(http::Exchange& exchange, FileJobs& jobs, std::shared_ptr<UniqueFd> fd,
                     http::ResponseHead head, std::string beginning, bool complete, bool seekable) {
  GzipWriter gzip;
  uint64_t offset = beginning.size();
  std::string first = gzip.add(beginning);
  if (complete) first += gzip.finish();
  if (!co_await exchange.start_with(std::move(head), std::nullopt, first)) co_return;
  while (!complete) {
    const auto piece = co_await read_piece(
        jobs, fd, seekable ? std::optional<uint64_t>(offset) : std::nullopt, kReadSize);
    if (!piece) {
      exchange.abort();
      co_return;
    }
    complete = piece->empty();
    offset += piece->size();
    const std::string out = complete ? gzip.finish() : gzip.add(*piece);
    if (!out.empty() && !co_await exchange.write(out)) co_return;
  }
  (void)co_await exchange.finish();
}

}  // namespace

Task<void> send_download(http::Exchange& exchange, FileJobs jobs, std::string path) {
  const http::Headers& asked = exchange.request().headers;
  auto job = [path]() -> Result<Opened> { return open_download(path); };
  auto result = co_await jobs.run(std::move(job));
  if (!result) {
    co_await respond_rest_error(exchange, 503, result.error().message());
    co_return;
  }
  Opened opened = *std::move(result);
  if (opened.refusal) {
    (void)co_await exchange.respond(*std::move(opened.refusal));
    co_return;
  }
  // A close() may wait for a program that serves the file system.
  const auto fd = opened.local ? std::make_shared<UniqueFd>(std::move(opened.fd))
                               : jobs.hold(std::move(opened.fd));
  const Encoding encoding = choose_encoding(asked);
  if (encoding == Encoding::kNotAcceptable) {
    co_await respond_rest_error(exchange, 406, "no acceptable encoding; gzip and identity exist");
    co_return;
  }

  const std::string name = base_name(path);
  http::ResponseHead head;
  head.headers = {{"Vary", "Accept-Encoding"}, {"Content-Disposition", inline_disposition(name)}};
  const bool seekable = ::lseek(fd->get(), 0, SEEK_CUR) >= 0;
  if (encoding == Encoding::kGzip) {
    head.headers.add("Content-Encoding", "gzip");
    head.headers.add("Content-Type",
                     std::string(type_by_extension(name).value_or("application/octet-stream")));
    co_await send_gzip(exchange, jobs, fd, std::move(head), std::move(opened.beginning),
                       opened.complete, seekable);
    co_return;
  }
  const std::string type(type_by_extension(name).value_or(
      sniff_type(std::string_view(opened.beginning).substr(0, kSniffSize))));
  head.headers.add("Content-Type", type);
  if (!opened.size) {
    if (!co_await exchange.start(std::move(head), std::nullopt)) co_return;
    co_await send_until_end(exchange, jobs, fd, std::move(opened.beginning), seekable);
    co_return;
  }

  head.headers.add("Last-Modified", format_http_date(opened.modified));
  head.headers.add("Accept-Ranges", "bytes");
  head.status = conditional_status(asked, opened.modified);
  if (head.status != 0) {
    (void)co_await exchange.respond({head.status, std::move(head.headers), {}});
    co_return;
  }
  head.status = 200;
  Selection selection = select_ranges(asked, *opened.size, opened.modified);
  if (selection.kind == Selection::Kind::kUnsatisfiable) {
    http::Response refusal = text_response(416, "the range lies outside of the file");
    refusal.headers.add("Content-Range", cat("bytes */", *opened.size));
    (void)co_await exchange.respond(std::move(refusal));
    co_return;
  }
  if (selection.kind == Selection::Kind::kWhole) {
    co_await send_range(exchange, jobs, fd, std::move(head), opened, {0, *opened.size});
    co_return;
  }
  head.status = 206;
  if (selection.parts.size() > 1) {
    RangeParts parts(std::move(selection.parts), *opened.size, type, random_hex(16));
    co_await send_parts(exchange, jobs, fd, std::move(head), opened, std::move(parts));
    co_return;
  }
  head.headers.add("Content-Range", content_range(selection.parts[0], *opened.size));
  co_await send_range(exchange, jobs, fd, std::move(head), opened, selection.parts[0]);
}

}  // namespace alcove::agent
