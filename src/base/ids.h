// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strong_string.h"

namespace alcove {

using SandboxId = StrongString<struct SandboxIdTag>;    // "i" + 20 of [a-z0-9]
using TemplateId = StrongString<struct TemplateIdTag>;  // 20 of [a-z0-9]
using BuildId = StrongString<struct BuildIdTag>;        // UUID
using TeamId = StrongString<struct TeamIdTag>;          // UUID
using KeyId = StrongString<struct KeyIdTag>;            // UUID

// Fresh random ids from the kernel's generator.
SandboxId make_sandbox_id();
TemplateId make_template_id();
std::string make_uuid();

// `length` random bytes in lower-case hex (so 2 * length characters).
std::string random_hex(size_t length);
// `length` random characters of [a-z0-9].
std::string random_alphanumeric(size_t length);

// Accepts "<id>" and "<id>-<suffix>" (clients append a client id) and returns the id alone.
// Anything but [a-z0-9] in either part, or a second dash, is refused: "Invalid sandbox ID".
Result<SandboxId> parse_sandbox_id(std::string_view text);

}  // namespace alcove
