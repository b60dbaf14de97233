// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"

namespace alcove {

// Template builds can do without the machine's certificates. The bundle for clients, which replaces
// their system's, cannot.
enum class CaUse { kBuildsOnly, kClientsToo };

// Copies the certificates that this machine trusts to `target`: the file named by SSL_CERT_FILE,
// else the first of the places where systems keep them. Jails can only be shown what lies in the
// data directory. Returns `target`, or nothing if this machine has no such file.
// `own_bundle` is what our `env` file sets SSL_CERT_FILE to: then the copy made before is right.
Result<std::string> copy_ca_bundle(const std::string& target, const std::string& own_bundle,
                                   CaUse use);

}  // namespace alcove
