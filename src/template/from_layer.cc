// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/from_layer.h"

#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "image/run_program.h"
#include "image/tree.h"
#include "image/unpack.h"

namespace alcove::templates {
namespace {

constexpr std::chrono::minutes kDebianTimeout(60);

// The choice of Debian's "slim" images. Remembered by dpkg inside, for later installs too.
constexpr const char* kSlimOptions[] = {
    "path-exclude=/usr/share/doc/*",     "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*",     "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",  "path-include=/usr/share/locale/locale.alias",
    "path-exclude=/usr/share/lintian/*",
};

// Files that mmdebstrap takes over from this machine.
constexpr const char* kHostFiles[] = {"etc/hostname", "etc/resolv.conf"};

Result<void> make_debian(const From& from, const image::LayerStage& stage, const Progress& progress,
                         const std::atomic<bool>* canceled) {
  image::Program program;
  // mmdebstrap mounts /proc and others in the new root. In namespaces of its own, all that ends
  // with it, however it ends; and it ends with the server, however that ends. No fsync for each
  // file: the commit of the layer syncs all.
  program.argv = {"setpriv",
                  "--pdeathsig",
                  "KILL",
                  "unshare",
                  "--mount",
                  "--pid",
                  "--fork",
                  "--kill-child",
                  "--mount-proc",
                  "mmdebstrap",
                  "--mode=root",
                  "--format=directory",
                  "--variant=minbase",
                  "--dpkgopt=force-unsafe-io"};
  if (!from.packages.empty()) program.argv.push_back("--include=" + join(from.packages, ","));
  if (from.docs == From::Docs::kSlim) {
    for (const char* option : kSlimOptions) program.argv.push_back(cat("--dpkgopt=", option));
    // Packages with alternatives (Java) link their manual pages there and fail without it.
    program.argv.emplace_back("--essential-hook=mkdir -p \"$1\"/usr/share/man/man1");
  }
  program.argv.push_back(from.source);
  program.argv.push_back(stage.root());
  program.inherited_fd = stage.lock_fd();
  program.on_line = progress;
  program.timeout = kDebianTimeout;
  program.canceled = canceled;
  ALCOVE_TRY(image::run_program(program));
  for (const char* path : kHostFiles) {
    if (::unlink(cat(stage.root(), "/", path).c_str()) != 0 && errno != ENOENT) {
      return fail_errno(errno, cat("remove ", path));
    }
  }
  // The device nodes are of no use: a sandbox has its own /dev.
  return image::sanitize_tree(stage.root(), {});
}

}  // namespace

Result<void> make_from_layer(const From& from, const image::LayerStage& stage,
                             const Progress& progress, const std::atomic<bool>* canceled) {
  switch (from.kind) {
    case From::Kind::kDebian:
      if (progress) {
        progress(cat("installing Debian ", from.source, " with ", from.packages.size(),
                     " packages and what they need (one to two minutes)"));
      }
      return make_debian(from, stage, progress, canceled);
    case From::Kind::kDirectory:
      if (progress) progress(cat("copying ", from.source));
      return image::copy_tree(from.source, stage.root(), progress);
    case From::Kind::kTar:
      if (progress) progress(cat("unpacking ", from.source));
      return image::unpack_tar(from.source, stage.root(), {}, progress);
    case From::Kind::kTemplate:
      break;
  }
  return fail(Code::kInternal, "a template has no first layer of its own");
}

}  // namespace alcove::templates
