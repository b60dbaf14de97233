// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

// The runtimes of the sanitizers call these by name.
extern "C" {
const char* __asan_default_options();
const char* __tsan_default_options();
const char* __ubsan_default_options();
}
