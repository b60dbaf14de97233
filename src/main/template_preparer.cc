// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/template_preparer.h"

#include <algorithm>
#include <chrono>
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
                                   templates::RecipeBook recipes, Replacements replacements)
    : deps_(dependencies),
      engine_(std::move(engine)),
      recipes_(std::move(recipes)),
      replacements_(replacements) {}

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
  std::vector<const templates::Recipe*> later;
  for (const templates::Recipe& recipe : recipes_.recipes()) {
    if (!recipe.replaces.empty()) {
      later.push_back(&recipe);
    } else {
      order.insert(recipe.name == kDefaultTemplate ? order.begin() : order.end(), &recipe);
    }
  }
  bool has_default = true;
  for (const templates::Recipe* recipe : order) {
    if (deps_.stopping.load()) return;
    const bool prepared = prepare(*recipe);
    if (recipe->name == kDefaultTemplate) has_default = prepared;
  }
  if (deps_.stopping.load()) return;
  if (has_default) deps_.readiness.set_ready();
  if (replacements_ == Replacements::kNo) return;
  for (const templates::Recipe* recipe : later) {
    if (deps_.stopping.load()) return;
    prepare(*recipe);
  }
}

bool TemplatePreparer::prepare(const templates::Recipe& recipe) {
  const auto start = std::chrono::steady_clock::now();
  const auto note = [&](const std::string& text) {
    log_info(text);
    // Only looked at until the server is ready.
    if (deps_.readiness.pending()) deps_.readiness.set_progress(text);
  };
  auto result = [&]() -> Result<void> {
    if (auto better = finished_replacement(recipe)) return publish(*better);
    ALCOVE_TRY_ASSIGN(const templates::Build build,
                      engine_.ensure(recipe, [&](std::string_view line) {
                        const auto passed = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::steady_clock::now() - start);
                        note(cat("template ", recipe.name, ", ", passed.count(), " s: ", line));
                      }));
    return publish(build);
  }();
  if (result) return true;
  const std::string text =
      cat("template ", recipe.name, " cannot be built: ", result.error().message());
  log_error(text);
  if (recipe.name == kDefaultTemplate) deps_.readiness.set_progress(text);
  return false;
}

std::optional<templates::Build> TemplatePreparer::finished_replacement(
    const templates::Recipe& recipe) const {
  if (replacements_ == Replacements::kNo) return {};
  for (const templates::Recipe& other : recipes_.recipes()) {
    if (other.replaces == recipe.name) return engine_.find(other);
  }
  return {};
}

Result<void> TemplatePreparer::publish(const templates::Build& build) {
  node::BuildImage image;
  image.layers = build.layers;
  image.limits = build.limits;
  image.default_user = build.default_user;
  image.workdir = build.workdir;
  image.hostname = build.hostname;
  image.env_vars = build.envs;
  image.interpreter = build.interpreter;

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
