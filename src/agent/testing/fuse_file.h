// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent::testing {

// A file system in user space with one file, `file`, that is all zeros and takes every write. Who
// closes it waits until answer_closes(), or so long that close_timed_out() says so. It is mounted
// in a namespace of the calling thread, so it ends with the test whatever happens.
class FuseFile {
 public:
  FuseFile(std::string point, uint64_t size) : point_(std::move(point)), size_(size) {
    device_.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    EXPECT_TRUE(device_.valid()) << "/dev/fuse";
    EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
    EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    EXPECT_EQ(::mkdir(point_.c_str(), 0755), 0);
    const std::string options =
        cat("fd=", device_.get(), ",rootmode=40000,user_id=0,group_id=0,allow_other");
    mounted_ = ::mount("test", point_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    EXPECT_TRUE(mounted_) << std::strerror(errno);
    if (mounted_) server_ = std::thread([this] { serve(); });
  }
  ~FuseFile() {
    ending_ = true;
    if (server_.joinable()) server_.join();
    if (mounted_) ::umount2(point_.c_str(), MNT_DETACH);
  }
  FuseFile(const FuseFile&) = delete;
  FuseFile& operator=(const FuseFile&) = delete;

  std::string path() const { return point_ + "/file"; }
  bool close_is_waiting() const { return close_waits_; }
  void answer_closes() { closes_answered_ = true; }
  bool close_timed_out() const { return close_timed_out_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kFileNode = 2;
  static constexpr std::chrono::seconds kMostWait{10};

  void serve() {
    std::vector<char> buffer(1 << 20);
    while (!ending_) {
      pollfd readable{.fd = device_.get(), .events = POLLIN, .revents = 0};
      (void)::poll(&readable, 1, /*timeout=*/10);
      const ssize_t count = ::read(device_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno != EAGAIN && errno != EINTR && errno != ENOENT) return;
      if (count > 0) handle(buffer.data());
      answer_flush();
    }
  }

  void handle(const char* message) {
    fuse_in_header head{};
    std::memcpy(&head, message, sizeof head);
    const char* body = message + sizeof head;
    switch (head.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = 31;
        out.max_readahead = 65536;
        out.max_write = 65536;
        return answer(head.unique, out);
      }
      case FUSE_LOOKUP: {
        if (std::string_view(body) != "file") return refuse(head.unique, ENOENT);
        fuse_entry_out out{};
        out.nodeid = kFileNode;
        out.attr = attributes(kFileNode);
        return answer(head.unique, out);
      }
      case FUSE_GETATTR:
      case FUSE_SETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(head.nodeid);
        return answer(head.unique, out);
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        return answer(head.unique, out);
      }
      case FUSE_READ: {
        fuse_read_in in{};
        std::memcpy(&in, body, sizeof in);
        const uint64_t left = size_ - std::min<uint64_t>(in.offset, size_);
        return send(head.unique, 0, std::string(std::min<uint64_t>(in.size, left), '\0'));
      }
      case FUSE_WRITE: {
        fuse_write_in in{};
        std::memcpy(&in, body, sizeof in);
        fuse_write_out out{};
        out.size = in.size;
        return answer(head.unique, out);
      }
      case FUSE_FLUSH:
        flush_ = head.unique;
        flush_since_ = Clock::now();
        close_waits_ = true;
        return;
      case FUSE_RELEASE:
        return refuse(head.unique, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return refuse(head.unique, ENOSYS);
    }
  }

  void answer_flush() {
    if (!flush_) return;
    const bool late = Clock::now() - flush_since_ > kMostWait;
    if (!closes_answered_ && !late && !ending_) return;
    if (late) close_timed_out_ = true;
    refuse(*flush_, 0);
    flush_.reset();
  }

  fuse_attr attributes(uint64_t node) const {
    fuse_attr attr{};
    attr.ino = node;
    attr.mode = node == kFileNode ? S_IFREG | 0644 : S_IFDIR | 0755;
    attr.nlink = 1;
    attr.size = node == kFileNode ? size_ : 0;
    attr.blksize = 4096;
    return attr;
  }

  template <typename Body>
  void answer(uint64_t unique, const Body& body) {
    send(unique, 0, std::string(reinterpret_cast<const char*>(&body), sizeof body));
  }
  // Or, with 0, an answer that says nothing.
  void refuse(uint64_t unique, int error) { send(unique, error, ""); }
  void send(uint64_t unique, int error, std::string body) {
    fuse_out_header head{};
    head.len = static_cast<uint32_t>(sizeof head + body.size());
    head.error = -error;
    head.unique = unique;
    body.insert(0, reinterpret_cast<const char*>(&head), sizeof head);
    (void)!::write(device_.get(), body.data(), body.size());
  }

  const std::string point_;
  const uint64_t size_;
  UniqueFd device_;
  bool mounted_ = false;
  std::thread server_;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> close_waits_ = false;
  std::atomic<bool> closes_answered_ = false;
  std::atomic<bool> close_timed_out_ = false;
  // The server's own: the close that waits.
  std::optional<uint64_t> flush_;
  Clock::time_point flush_since_;
};

}  // namespace alcove::agent::testing
