// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/listen_address.h"

#include "base/strings.h"

namespace alcove {

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto port = colon == std::string_view::npos
                        ? std::nullopt
                        : parse_number<uint16_t>(text.substr(colon + 1));
  if (!port) {
    return fail(Code::kInvalidArgument,
                cat("--listen ", text, ": expected <address>:<port>, e.g. 127.0.0.1:3000"));
  }
  std::string_view address = text.substr(0, colon);
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  return ListenAddress{.address = address.empty() ? "0.0.0.0" : std::string(address),
                       .port = *port};
}

std::string origin_of(const ListenAddress& listen) {
  if (listen.address == "0.0.0.0") return cat("http://127.0.0.1:", listen.port);
  if (listen.address == "::") return cat("http://[::1]:", listen.port);
  if (listen.address.find(':') != std::string::npos) {
    return cat("http://[", listen.address, "]:", listen.port);
  }
  return cat("http://", listen.address, ":", listen.port);
}

}  // namespace alcove
