// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace alcove::jail {

// Names in the launcher's own root directory.
inline constexpr const char* kLeanData = "/data";        // bind of the data directory
inline constexpr const char* kLeanDirs = "/dirs";        // binds of the extra ones: /dirs/0, ...
inline constexpr const char* kLeanCgroups = "/cgroups";  // clones of the hierarchies, read-only
inline constexpr const char* kLeanLayers = "/layers";    // mount points: /layers/0, ...
inline constexpr const char* kLeanOverlay = "/overlay";
inline constexpr const char* kLeanRoot = "/root";
inline constexpr const char* kLeanDev = "/dev";
inline constexpr const char* kLeanAgent = "/agent";
inline constexpr const char* kLeanInterpreter = "/interpreter";
inline constexpr const char* kLeanCaBundle = "/ca-bundle";
inline constexpr const char* kLeanShared = "/shared";  // SharedFiles
inline constexpr const char* kLeanLook = "/look";      // what sandboxes bind files from, read-only
inline constexpr const char* kLeanLookWritable = "/look-writable";
inline constexpr const char* kLeanEmptyDir = "/look/empty-dir";
inline constexpr const char* kLeanEmptyFile = "/look/empty-file";

// overlayfs takes 500 lower layers; the mount options hold some 300 of these paths.
inline constexpr size_t kMaxLayers = 128;

// Moves the calling process into a mount namespace that holds only what sandboxes are made of: few
// mounts make clone(CLONE_NEWNS) quick and unmounting needs no lock that the host cares for. It
// carries whole /proc and /sys because a user namespace may mount its own only where such are
// visible; no sandbox keeps them (guest_steps.cc leaves this root).
// `cgroup_mounts`: name below /cgroups and mount point of each hierarchy.
using CgroupMounts = std::vector<std::pair<std::string, std::string>>;
Result<void> enter_lean_root(const std::string& data_dir,
                             const std::vector<std::string>& extra_dirs,
                             const CgroupMounts& cgroup_mounts);

// Where a host path lies in the lean root; kInvalidArgument if it is below none of the directories.
Result<std::string> to_lean_path(const std::string& host_path, const std::string& data_dir,
                                 const std::vector<std::string>& extra_dirs);

}  // namespace alcove::jail
