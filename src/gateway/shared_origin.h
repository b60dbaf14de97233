// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace alcove::gateway {

// Services at `<origin>/_sandbox/<id>/<port>/<path>`, for users without DNS. All sandboxes share
// the API's origin there, so a browser is told to treat every answer as one of no origin, and
// nothing that a browser keeps for an origin passes in either direction.

inline constexpr std::string_view kPathRoot = "/_sandbox/";

// The parts of such a path; the texts are not checked yet.
struct PathAddress {
  std::string_view id;
  std::string_view port;
  // All three: "/_sandbox/<id>/<port>".
  std::string_view prefix;
};

// Nothing if the path does not begin with kPathRoot.
std::optional<PathAddress> find_path_address(std::string_view path);

// The answer for a request that is not to be passed on: a path without the final '/' (relative
// links would miss the sandbox), and scripts of service workers, which would see other sandboxes'
// traffic.
std::optional<http::Response> refuse_shared(const http::RequestHead& request,
                                            std::string_view prefix);

// The request as the service gets it: the path behind the prefix, no cookies, and the prefix in
// X-Forwarded-Prefix.
void enter_shared(http::RequestHead& head, std::string_view prefix);

// The answer as the client gets it. `host` is the one that the service was asked by: redirects to
// it and to paths stay below the prefix.
void leave_shared(http::Headers& headers, std::string_view prefix, std::string_view host);

// For answers of our own.
void add_shared_policy(http::Headers& headers);

}  // namespace alcove::gateway
