// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/template_preparer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "node/build_image.h"

namespace alcove {
namespace {

constexpr std::string_view kDefaultTemplate = "base";

bool all_exist(const std::vector<std::string>& layers) {
  std::error_code error;
  return std::all_of(layers.begin(), layers.end(), [&](const std::string& layer) {
    return std::filesystem::is_directory(layer, error);
  });
}

}  // namespace

TemplatePreparer::TemplatePreparer(Dependencies dependencies, templates::TemplateEngine engine,
                                   templates::RecipeBook recipes)
    : deps_(dependencies), engine_(std::move(engine)), recipes_(std::move(recipes)) {}

Result<void> TemplatePreparer::load_known() {
  ALCOVE_TRY_ASSIGN(const auto records, deps_.store.list_templates());
  for (const store::Template& record : records) {
    auto image = node::decode_build_image(record.build_json);
    if (!image || !all_exist(image->layers)) continue;
    deps_.catalog.put({.record = record, .limits = image->limits});
  }
  return {};
}

void TemplatePreparer::prepare_all() {
  std::vector<const templates::Recipe*> order;
  for (const templates::Recipe& recipe : recipes_.recipes()) {
    order.insert(recipe.name == kDefaultTemplate ? order.begin() : order.end(), &recipe);
  }
  for (const templates::Recipe* recipe : order) {
    if (deps_.stopping.load()) return;
    auto prepared = prepare(*recipe);
    if (!prepared) {
      const std::string text =
          cat("template ", recipe->name, " cannot be built: ", prepared.error().message());
      log_error(text);
      if (recipe->name == kDefaultTemplate) deps_.readiness.set_progress(text);
    } else if (recipe->name == kDefaultTemplate) {
      deps_.readiness.set_ready();
    }
  }
  // Someone who serves other templates only is ready when those are.
  if (recipes_.find(kDefaultTemplate) == nullptr) deps_.readiness.set_ready();
}

Result<void> TemplatePreparer::prepare(const templates::Recipe& recipe) {
  const bool is_default = recipe.name == kDefaultTemplate;
  ALCOVE_TRY_ASSIGN(const templates::Build build,
                    engine_.ensure(recipe, [&](std::string_view line) {
                      const std::string text = cat("template ", recipe.name, ": ", line);
                      log_info(text);
                      if (is_default) deps_.readiness.set_progress(text);
                    }));
  return publish(build);
}

Result<void> TemplatePreparer::publish(const templates::Build& build) {
  node::BuildImage image;
  image.layers = build.layers;
  image.limits = build.limits;
  image.default_user = build.default_user;
  image.workdir = build.workdir;
  image.hostname = build.hostname;
  image.env_vars = build.envs;

  store::Template record;
  record.id = build.template_id;
  record.name = build.template_name;
  record.aliases = build.aliases;
  record.build = build.build_id;
  record.build_hash = build.hash;
  record.build_json = node::encode_build_image(image);
  // The store keeps the first one.
  record.created_at = deps_.clock.now();
  record.updated_at = record.created_at;
  ALCOVE_TRY(deps_.store.put_template(record));
  deps_.catalog.put({.record = std::move(record), .limits = build.limits});
  deps_.driver.warm(build.hash);
  log_info(cat("template ", build.template_name, " is ready"));
  return {};
}

}  // namespace alcove
