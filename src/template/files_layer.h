// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "template/recipe.h"

namespace alcove::templates {

// What a recipe puts into the root file system as it is: the content of its folder root/, owned by
// root, and the host's name and name server. Permissions do not depend on how the recipe was
// checked out.
struct FilePlan {
  struct Item {
    enum class Type { kDirectory, kFile, kLink };
    std::string path;  // relative to the root
    Type type = Type::kFile;
    uint32_t mode = 0644;
    // Directories only: whether the recipe names the mode. If not, an existing one stays.
    enum class Mode { kDefault, kNamed };
    Mode mode_source = Mode::kDefault;
    std::string source = {};   // the file on the host; empty: `content`
    std::string content = {};  // of a small file, or the target of a link
  };
  std::vector<Item> items;  // directories before what is in them

  bool empty() const { return items.empty(); }
};

// `hostname` empty: only what is in root/.
Result<FilePlan> plan_files(const Recipe& recipe, const std::string& hostname);
Result<std::string> hash_plan(const FilePlan& plan);

// Writes the plan into the empty directory `root`, which will lie on `layers` (topmost first).
// Directories that exist there keep owner and mode.
Result<void> write_files(const FilePlan& plan, const std::string& root,
                         const std::vector<std::string>& layers);

}  // namespace alcove::templates
