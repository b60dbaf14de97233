// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

namespace alcove {

// A sanitizer's report must reach somebody: in such a build programs that otherwise have no
// standard error keep the server's, sandboxes included. Users never get one.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace alcove
