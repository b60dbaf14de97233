// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "network/egress_policy.h"

namespace alcove::relay {

// What the server asks of the relay: one message each on a SOCK_SEQPACKET connection. The first
// descriptor of a request is the socket for its answer. Relay and server may be of different
// builds; a relay of another protocol version is ended and replaced. The decoders accept any bytes.

inline constexpr uint64_t kProtocolVersion = 1;

// First on every connection. Answer: Welcome.
struct Hello {
  uint64_t version = kProtocolVersion;
  // Name servers for all sandboxes; none: those of the host.
  std::vector<std::string> resolvers;
};

// Second descriptor: the sandbox's network namespace. Opening what is open changes its policy only.
struct Open {
  std::string id;
  network::EgressPolicy policy;
};

struct Close {
  std::string id;
};

// Answer: Listing with the ids that come after this one.
struct List {
  std::string after;
};

// The relay ends after its answer.
struct Stop {};

using Request = std::variant<Hello, Open, Close, List, Stop>;

struct Done {};
struct Failed {
  std::string message;
};
struct Welcome {
  uint64_t version = kProtocolVersion;
};
struct Listing {
  std::vector<std::string> ids;  // in order; none: that was the end
};

// There are no descriptors for what was asked; there may be later.
struct Full {
  std::string message;
};

// By their place: new ones come at the end.
using Answer = std::variant<Done, Failed, Welcome, Listing, Full>;

// Ids per Listing, so that it fits into a message.
inline constexpr size_t kListingSize = 500;

std::string encode(const Request& request);
std::string encode(const Answer& answer);
Result<Request> decode_request(std::string_view bytes);
Result<Answer> decode_answer(std::string_view bytes);

}  // namespace alcove::relay
