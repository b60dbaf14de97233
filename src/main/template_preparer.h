// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
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

  TemplatePreparer(Dependencies dependencies, templates::TemplateEngine engine,
                   templates::RecipeBook recipes);

  // Lists the templates of an earlier run, as far as their layers are still there.
  Result<void> load_known();
  // Builds what is new; `base` first, and the server is ready when it is done. Blocks, for minutes
  // at the first start. A recipe that fails is logged and does not stop the others.
  void prepare_all();

 private:
  Result<void> prepare(const templates::Recipe& recipe);
  Result<void> publish(const templates::Build& build);

  Dependencies deps_;
  templates::TemplateEngine engine_;
  templates::RecipeBook recipes_;
};

}  // namespace alcove
