// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/layer_store.h"
#include "sandbox/driver.h"
#include "template/build.h"
#include "template/recipe.h"
#include "template/step_runner.h"

namespace alcove::templates {

// Makes templates from recipes and keeps them: layers in <data>/layers, descriptions of finished
// builds in <data>/builds. Calls block, for minutes if something is new. Thread-safe, also between
// processes: of two that want the same layer, one makes it and the other waits. What fails leaves
// nothing behind.
class TemplateEngine {
 public:
  struct Options {
    std::string data_dir;
    // Runs the steps. May be null as long as no recipe with steps is built.
    sandbox::Driver* driver = nullptr;
    // The program alcove-step.
    std::string step_program;
    // What steps trust, for as long as they run: a file that the driver can mount. It is no part
    // of a template and of no hash. Empty: what the template's own files say.
    std::string ca_bundle = {};
    // Where `from.template` is looked up.
    RecipeBook recipes = {};
    // When it is set, builds under way fail soon; outlives the engine.
    const std::atomic<bool>* canceled = nullptr;
  };

  static Result<TemplateEngine> open(Options options);

  // The finished build of a recipe, made now if need be.
  Result<Build> ensure(const Recipe& recipe, const Progress& progress);

  // The same, only if it is there already.
  std::optional<Build> find(const Recipe& recipe) const;

  // A build that ensure() finished earlier, perhaps in an earlier process; nothing if a part of
  // it is gone.
  std::optional<Build> find_build(const std::string& hash) const;
  Result<std::vector<Build>> list_builds() const;

 private:
  // A recipe with all its hashes and inherited settings.
  struct Plan;

  TemplateEngine(Options options, image::LayerStore store)
      : options_(std::move(options)), store_(std::move(store)) {}

  Result<Plan> plan(const Recipe& recipe, int depth) const;
  Result<void> make_layers(const Plan& plan, const Progress& progress) const;
  Result<void> make_python_layer(const Plan& plan, const image::LayerStage& stage,
                                 const Progress& progress) const;
  Result<void> make_steps_layer(const Plan& plan, const image::LayerStage& stage,
                                const Progress& progress) const;
  // Runs steps on the layers below `target`, whose stage this is.
  Result<void> run_in_jail(StepJob job, const Plan& plan, const image::LayerHash& target,
                           const image::LayerStage& stage, const Progress& progress) const;
  template <typename Make>
  Result<void> make_layer(const image::LayerHash& hash, const Make& make) const;
  std::vector<std::string> paths(const std::vector<image::LayerHash>& layers) const;
  std::string build_path(const std::string& hash) const;

  Options options_;
  image::LayerStore store_;
};

}  // namespace alcove::templates
