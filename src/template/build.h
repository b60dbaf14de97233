// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "image/layer_store.h"
#include "sandbox/driver.h"

namespace alcove::templates {

// A finished template: everything that is needed to boot sandboxes from it.
struct Build {
  // SHA-256 in hex of the recipe, its files' content and the engine's version.
  std::string hash;
  // Derived from the name, so that a template has the same id everywhere and forever, and from
  // the hash. The file /.e2b in the root file system holds both.
  TemplateId template_id;
  BuildId build_id;
  std::string template_name;
  std::vector<std::string> aliases;
  std::string description;
  // Directories on the host, topmost first.
  std::vector<std::string> layers;
  sandbox::Limits limits;
  std::string default_user;
  // Empty: the user's home.
  std::string workdir;
  std::string hostname;
  std::map<std::string, std::string> envs;
  // Whether sandboxes get the code interpreter at boot.
  bool interpreter = false;
};

TemplateId template_id_of(std::string_view template_name);
BuildId build_id_of(std::string_view build_hash);

// The file that makes a restarted server find a build: layers are named by hash in it.
std::string serialize_build(const Build& build, const std::vector<image::LayerHash>& layers);

struct StoredBuild {
  Build build;  // layers are empty
  std::vector<image::LayerHash> layers;
};
Result<StoredBuild> parse_build(std::string_view text);

}  // namespace alcove::templates
