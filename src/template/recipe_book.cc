// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <algorithm>

#include "base/strings.h"
#include "image/files.h"
#include "template/recipe.h"

namespace alcove::templates {
namespace {

bool answers_to(const Recipe& recipe, std::string_view name) {
  return recipe.name == name ||
         std::find(recipe.aliases.begin(), recipe.aliases.end(), name) != recipe.aliases.end();
}

}  // namespace

Result<RecipeBook> RecipeBook::load(const std::vector<std::string>& dirs) {
  RecipeBook book;
  for (const std::string& dir : dirs) {
    ALCOVE_TRY_ASSIGN(const auto names, image::list_directory(dir));
    for (const std::string& name : names) {
      const std::string folder = cat(dir, "/", name);
      if (!image::path_exists(folder + "/recipe.toml")) continue;
      ALCOVE_TRY_ASSIGN(Recipe recipe, load_recipe(folder));
      ALCOVE_TRY(book.add(std::move(recipe)));
    }
  }
  return book;
}

const Recipe* RecipeBook::find(std::string_view name_or_alias) const {
  const auto found = std::find_if(recipes_.begin(), recipes_.end(), [&](const Recipe& recipe) {
    return answers_to(recipe, name_or_alias);
  });
  return found == recipes_.end() ? nullptr : &*found;
}

Result<void> RecipeBook::add(Recipe recipe) {
  std::erase_if(recipes_, [&](const Recipe& other) { return other.name == recipe.name; });
  std::vector<std::string> claimed = recipe.aliases;
  claimed.push_back(recipe.name);
  for (const std::string& name : claimed) {
    if (const Recipe* other = find(name)) {
      return fail(Code::kAlreadyExists,
                  cat("the name ", name, " is claimed by ", recipe.folder, " and ", other->folder));
    }
  }
  recipes_.push_back(std::move(recipe));
  return {};
}

}  // namespace alcove::templates
