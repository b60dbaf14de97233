// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::image {

struct Xattr {
  std::string name;
  std::string value;
};

inline constexpr const char* kCapabilityXattr = "security.capability";

// Attributes of the file behind an O_PATH descriptor. Symbolic links have none that we keep.
Result<std::vector<Xattr>> read_xattrs(int path_fd);
Result<void> write_xattr(int path_fd, const Xattr& attribute);

// Whether an attribute of untrusted content may go into a layer: user.* (but not those that
// overlayfs reads) and file capabilities.
bool is_allowed_in_layer(std::string_view name);

// File capabilities that hold for the root user of the layer: version 3 (bound to the root of one
// user namespace) becomes version 2. Nothing for a malformed value.
std::optional<std::string> capability_for_layer(std::string_view value);

// A POSIX ACL (system.posix_acl_*) with `base` taken from each user and group id. Nothing if it is
// malformed or names an id outside base..base+65535.
std::optional<std::string> shift_acl(std::string_view value, uint32_t base);

}  // namespace alcove::image
