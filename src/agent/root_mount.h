// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "agent/spawn.h"
#include "base/unique_fd.h"

namespace alcove::agent {

// What lies on the root mount can be used without a thread: no other file system, which may hang
// (FUSE, a network), is asked on the way there. The agent's program lies there, too.

// A handle (O_PATH) of what an absolute path leads to, links included; invalid if the way leaves
// the root mount, if nothing is there, or if the kernel cannot tell (before 5.6).
UniqueFd find_on_root_mount(const std::string& path);

// Whether using this path asks no other file system: it leads to something on the root mount, or
// to a place there where nothing is yet.
bool stays_on_root_mount(const std::string& path);

// Whether starting this process needs nothing but the root mount: its directory and its program
// lie there, the program's loader too, and it is no script, whose interpreter may lie anywhere.
bool starts_on_root_mount(const SpawnSpec& spec);

}  // namespace alcove::agent
