// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/driver.h"

namespace alcove::templates {

// What a template's root file system starts from.
struct From {
  enum class Kind {
    kDebian,     // a suite, made with mmdebstrap
    kDirectory,  // copied
    kTar,        // unpacked
    kTemplate,   // the layers of another recipe
  };
  Kind kind = Kind::kDebian;
  // Suite, absolute path, or template name.
  std::string source;
  // kDebian only.
  std::vector<std::string> packages;
  // Without documentation, manual pages and translations.
  enum class Docs { kFull, kSlim };
  Docs docs = Docs::kFull;
};

// Packages of PyPI at exact versions: the host fetches the wheels, a jail installs them.
struct PythonPackages {
  // Of the template's own Python, as "3.13".
  std::string version;
  // Absolute path of a file with one line per wheel: name==version --hash=sha256:...
  std::string lock;
};

// A template's definition: the file recipe.toml in a folder, and the folder root/ beside it, whose
// files are put into the root file system.
struct Recipe {
  std::string folder;
  // What is copied into the root file system: root/ in the folder, or another recipe's.
  std::string root;
  std::string name;
  std::vector<std::string> aliases;
  std::string description;
  sandbox::Limits limits;
  From from;
  // Permissions of files from root/ that are not 0644 (0755 if executable): path -> mode.
  std::map<std::string, uint32_t> modes;
  std::optional<PythonPackages> python;
  // Shell commands, run as root in a jail with internet access, in this order.
  std::vector<std::string> steps;
  // Absent: those of the template it starts from, else user "user", its home and "e2b.local".
  std::optional<std::string> user;
  std::optional<std::string> workdir;
  std::optional<std::string> hostname;
  // For every process in a sandbox, and for the steps.
  std::map<std::string, std::string> envs;
  // Whether its sandboxes get the code interpreter; inherited from the template it starts from.
  bool interpreter = false;
  // The template that this one takes the place of once it is built: same name, aliases, id and
  // resources. Empty: none.
  std::string replaces;
};

// Reads <folder>/recipe.toml. Unknown keys are errors that name the key.
Result<Recipe> load_recipe(const std::string& folder);
Result<Recipe> parse_recipe(std::string_view text, const std::string& folder);

// Recipes by name and alias.
class RecipeBook {
 public:
  // Every direct subfolder that has a recipe.toml, in all of `dirs`. A later folder replaces
  // an earlier recipe of the same name; two recipes that claim one alias are an error.
  static Result<RecipeBook> load(const std::vector<std::string>& dirs);

  const std::vector<Recipe>& recipes() const { return recipes_; }
  const Recipe* find(std::string_view name_or_alias) const;
  Result<void> add(Recipe recipe);

 private:
  std::vector<Recipe> recipes_;
};

}  // namespace alcove::templates
