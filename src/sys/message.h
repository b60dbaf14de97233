// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

// Messages with descriptors over a SOCK_SEQPACKET pair of AF_UNIX.

inline constexpr size_t kMaxMessageBytes = 64 * 1024;
inline constexpr size_t kMaxMessageFds = 64;

struct Message {
  std::string bytes;
  std::vector<UniqueFd> fds;
};

Result<std::pair<UniqueFd, UniqueFd>> make_message_pair();

// The peer gets copies of the descriptors. Never raises SIGPIPE.
Result<void> send_message(int socket, std::string_view bytes, std::span<const int> fds);

// kUnavailable when the peer has closed, kDeadlineExceeded when nothing came in time.
Result<Message> receive_message(int socket);
Result<Message> receive_message(int socket, std::chrono::steady_clock::time_point deadline);

}  // namespace alcove::sys
