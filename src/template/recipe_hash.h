// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "template/recipe.h"

namespace alcove::templates {

// SHA-256 in hex over names, types, permissions, owners, link targets and content below `root`;
// times do not count.
Result<std::string> hash_tree(const std::string& root);
Result<std::string> hash_file(const std::string& path);

// Hash of the wheels that are installed and of how that is done.
Result<std::string> hash_python(const PythonPackages& python);

// Hash of what the first layer is made from; not for kTemplate.
Result<std::string> hash_from(const From& from);

}  // namespace alcove::templates
