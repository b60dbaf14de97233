// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

namespace alcove {

// Sends the log facade to stderr with time and level.
void use_server_log();

}  // namespace alcove
