// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "http/message.h"
#include "store/records.h"

namespace alcove::gateway {

// The answer for a request that may not reach that port of the sandbox; nothing if it may. The
// agent's port is guarded by the agent's own token, and by refusing its control calls here; the
// other ports by the traffic token, where the sandbox has one. `path` is the one that the service
// sees.
std::optional<http::Response> refuse_access(const http::RequestHead& request, std::string_view path,
                                            const store::Sandbox& sandbox, uint16_t port);

}  // namespace alcove::gateway
