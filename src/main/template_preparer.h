// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "api/readiness.h"
#include "api/template_catalog.h"
#include "base/clock.h"
#include "base/result.h"
#include "sandbox/driver.h"
#include "store/store.h"
#include "template/engine.h"

namespace alcove {

// Turns the recipes the server was given into templates that a create can name.
class TemplatePreparer {
 public:
  struct Dependencies {
    store::Store& store;
    api::TemplateCatalog& catalog;
    api::Readiness& readiness;
    sandbox::Driver& driver;
    const Clock& clock;
    const std::atomic<bool>& stopping;
  };

  // Whether recipes that replace another one are built.
  enum class Replacements { kNo, kYes };

  TemplatePreparer(Dependencies dependencies, templates::TemplateEngine engine,
                   templates::RecipeBook recipes, Replacements replacements);

  // Lists the templates of an earlier run, as far as their layers are still there.
  Result<void> load_known();
  // Builds what is new, `base` first. Then the server is ready, and replacements are built: creates
  // get the old build until the new one is complete. Blocks, for minutes at the first start. A
  // recipe that fails is logged and does not stop the others; without `base` the server never gets
  // ready.
  void prepare_all();

 private:
  // False: it failed, or the server stops.
  bool prepare(const templates::Recipe& recipe);
  // The finished build that takes the recipe's place, made in an earlier run.
  std::optional<templates::Build> finished_replacement(const templates::Recipe& recipe) const;
  Result<void> publish(const templates::Build& build);

  Dependencies deps_;
  templates::TemplateEngine engine_;
  templates::RecipeBook recipes_;
  Replacements replacements_;
};

}  // namespace alcove
