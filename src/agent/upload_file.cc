// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/upload_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/file_io.h"
#include "agent/fs_operations.h"
#include "agent/paths.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent {
namespace {

// To the pool's thread and back costs as much as writing some 40 KiB.
constexpr size_t kWriteSize = 1024 * 1024;

}  // namespace

struct UploadFile::Job {
  std::string path;
  User owner;
  Metadata metadata;
  UniqueFd fd;
  bool existed = false;

  Result<void> open();
  Result<void> write(std::string_view data);
  Result<UploadedFile> close();
};

Result<void> UploadFile::Job::open() {
  struct stat info{};
  existed = ::stat(path.c_str(), &info) == 0;
  if (existed && S_ISDIR(info.st_mode)) {
    return fail(Code::kInvalidArgument, cat("path '", path, "' is a directory"));
  }
  if (!existed) {
    ALCOVE_TRY(ensure_directory(parent_path(path), owner));
  } else if (::chown(path.c_str(), owner.uid, owner.gid) != 0) {
    return fail_errno(errno, cat("chown '", path, "'"));
  }
  // O_NONBLOCK: opening a fifo that nobody reads fails instead of waiting for ever.
  ALCOVE_TRY_ASSIGN(fd,
                    open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!existed && ::fchown(fd.get(), owner.uid, owner.gid) != 0) {
    return fail_errno(errno, cat("chown '", path, "'"));
  }
  return {};
}

Result<void> UploadFile::Job::write(std::string_view data) {
  if (!fd.valid()) ALCOVE_TRY(open());
  if (auto written = write_all(fd.get(), data); !written) {
    return fail(written.error().context(cat("'", path, "'")));
  }
  return {};
}

Result<UploadedFile> UploadFile::Job::close() {
  UploadedFile file{path, {}};
  // A file that was just made has no metadata to reconcile.
  if (existed || !metadata.empty()) {
    ALCOVE_TRY(replace_metadata(fd.get(), metadata));
    file.metadata = read_metadata(path);
  }
  const int raw = fd.release();
  // EINTR leaves the descriptor closed, too. EDQUOT and EIO can show up as late as here.
  if (::close(raw) != 0 && errno != EINTR) return fail_errno(errno, path);
  return file;
}

UploadFile::UploadFile(FileJobs jobs, std::string path, User owner, Metadata metadata)
    : jobs_(jobs), job_(jobs.hold(Job())) {
  job_->path = std::move(path);
  job_->owner = std::move(owner);
  job_->metadata = std::move(metadata);
}

std::span<char> UploadFile::room() {
  if (!buffer_) buffer_.reset(new char[kWriteSize]);
  return {buffer_.get() + used_, kWriteSize - used_};
}

Task<Result<void>> UploadFile::filled(size_t count) {
  used_ += count;
  if (used_ == kWriteSize) co_return co_await flush();
  co_return Result<void>();
}

Task<Result<void>> UploadFile::add(std::string_view data) {
  while (!data.empty()) {
    const std::span<char> space = room();
    const size_t count = data.copy(space.data(), space.size());
    data.remove_prefix(count);
    ALCOVE_CO_TRY(co_await filled(count));
  }
  co_return Result<void>();
}

Task<Result<void>> UploadFile::flush() {
  auto work = [job = job_, bytes = buffer_, size = std::exchange(used_, 0)] {
    return job->write({bytes.get(), size});
  };
  return jobs_.run(std::move(work));
}

Task<Result<UploadedFile>> UploadFile::finish() {
  auto work = [job = std::move(job_), bytes = std::move(buffer_),
               size = std::exchange(used_, 0)]() -> Result<UploadedFile> {
    ALCOVE_TRY(job->write({bytes.get(), size}));
    return job->close();
  };
  return jobs_.run(std::move(work));
}

int UploadFile::status_of(const Error& error) {
  if (error.error_number() == ENOSPC || error.error_number() == EDQUOT) return 507;
  if (error.error_number() == 0) {
    if (error.code() == Code::kInvalidArgument) return 400;
    // Too many jobs wait for file systems that hang.
    if (error.code() == Code::kResourceExhausted) return 503;
  }
  return 500;
}

}  // namespace alcove::agent
