// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

// Writes netlink requests one after the other; they are sent together.
class NetlinkWriter {
 public:
  // Begins a message with its fixed part (ifinfomsg, rtmsg, ...).
  template <typename Header>
  void message(uint16_t type, uint16_t flags, const Header& header) {
    begin(type, flags);
    append(&header, sizeof header);
  }
  // An attribute of the message that was begun last.
  template <typename Value>
  void attribute(uint16_t type, const Value& value) {
    attribute_bytes(type, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  void attribute_bytes(uint16_t type, std::string_view value);

  const std::string& bytes() const { return out_; }

 private:
  void begin(uint16_t type, uint16_t flags);
  void append(const void* data, size_t size);
  void finish_length();

  std::string out_;
  size_t start_ = 0;
  uint32_t sequence_ = 0;
};

// Calls `visit(type, value)` for each attribute; stops at the first that does not fit.
template <typename Visit>
void for_each_attribute(std::string_view bytes, Visit visit) {
  constexpr size_t kHeader = 4;
  while (bytes.size() >= kHeader) {
    uint16_t length;
    uint16_t type;
    __builtin_memcpy(&length, bytes.data(), sizeof length);
    __builtin_memcpy(&type, bytes.data() + 2, sizeof type);
    if (length < kHeader || length > bytes.size()) return;
    constexpr uint16_t kTypeMask = 0x3fff;  // without the flags "nested" and "network order"
    visit(static_cast<uint16_t>(type & kTypeMask), bytes.substr(kHeader, length - kHeader));
    const size_t step = (static_cast<size_t>(length) + 3) & ~size_t{3};
    bytes.remove_prefix(step < bytes.size() ? step : bytes.size());
  }
}

// A non-blocking netlink socket of the calling thread's network namespace.
Result<UniqueFd> open_netlink(int protocol);

// Sends requests of which at least one asks for an acknowledgement. Returns 0, or the errno of the
// first that failed. The kernel works on them within the call.
int run_netlink(int socket, std::string_view requests);

}  // namespace alcove::sys
