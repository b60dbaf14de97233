// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/driver.h"

namespace alcove::node {

// What a finished template build gives to the sandboxes made from it. Kept as JSON in the
// template's record.
struct BuildImage {
  // Directories of the layers, topmost first.
  std::vector<std::string> layers;
  sandbox::Limits limits;
  // Who runs commands that name nobody, and where; empty workdir = that user's home.
  std::string default_user = "root";
  std::string workdir;
  std::string hostname = "e2b.local";
  std::map<std::string, std::string> env_vars;
  // Whether the agent starts the code interpreter with the sandbox (`interpreter` of the recipe).
  bool interpreter = false;
};

std::string encode_build_image(const BuildImage& image);
Result<BuildImage> decode_build_image(std::string_view json);

}  // namespace alcove::node
