// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Linked into the programs of sandboxes when they have a sanitizer: nobody gives them its options
// by the environment there.
#include "base/sanitizer_options.h"

// A sandbox has little memory for what was freed, and pid 1 may not be traced for a leak check.
const char* __asan_default_options() { return "detect_leaks=0:quarantine_size_mb=8"; }
const char* __tsan_default_options() { return "history_size=2"; }
const char* __ubsan_default_options() { return "print_stacktrace=1"; }
