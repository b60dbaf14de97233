// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/engine.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/sha256.h"
#include "base/strings.h"
#include "image/file_copy.h"
#include "image/files.h"
#include "image/tree.h"
#include "template/files_layer.h"
#include "template/from_layer.h"
#include "template/python_layer.h"
#include "template/recipe_hash.h"

namespace alcove::templates {
namespace {

// Part of every hash: raise it when the engine makes something else of the same recipe.
constexpr const char* kFormat = "alcove templates 2";
constexpr int kMaxDepth = 16;
constexpr const char* kDefaultUser = "user";
constexpr const char* kDefaultHostname = "e2b.local";

image::LayerHash layer_hash(std::string_view kind, std::string_view below,
                            std::string_view content) {
  return image::LayerHash(sha256_hex(cat(kFormat, "\n", kind, "\n", below, "\n", content)));
}

std::string steps_text(const Recipe& recipe, const std::map<std::string, std::string>& envs) {
  std::string text;
  for (const std::string& step : recipe.steps) text += cat(step.size(), ":", step, "\n");
  for (const auto& [name, value] : envs) text += cat(name, "=", value.size(), ":", value, "\n");
  return text;
}

std::string identity_file(const Build& build) {
  return cat("ENV_ID=", build.template_id.str(), "\nTEMPLATE_ID=", build.template_id.str(),
             "\nBUILD_ID=", build.build_id.str(), "\n");
}

Result<void> copy_program(const std::string& from, const std::string& to) {
  ALCOVE_TRY_ASSIGN(UniqueFd source, image::open_file(from, O_RDONLY));
  ALCOVE_TRY_ASSIGN(UniqueFd target, image::open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0755));
  ALCOVE_TRY(image::copy_content(source.get(), target.get()));
  if (::fchmod(target.get(), 0755) != 0) return fail_errno(errno, cat("chmod ", to));
  return {};
}

// What steps leave in /tmp is not part of a template.
Result<void> clear_directory(const std::string& path) {
  const auto names = image::list_directory(path);
  if (!names) return {};
  for (const std::string& name : *names) ALCOVE_TRY(image::remove_tree(cat(path, "/", name)));
  return {};
}

}  // namespace

struct TemplateEngine::Plan {
  const Recipe* recipe = nullptr;
  Build build;               // layers are filled in at the end
  std::vector<Plan> parent;  // none or one
  // Bottom first; each is there if the recipe has such a part.
  std::optional<image::LayerHash> from;
  std::optional<image::LayerHash> files;
  std::optional<image::LayerHash> python;
  std::optional<image::LayerHash> steps;
  image::LayerHash identity;
  FilePlan file_plan;

  // Topmost first, without the identity, which is not inherited.
  std::vector<image::LayerHash> content_layers() const {
    std::vector<image::LayerHash> layers;
    for (const auto& layer : {steps, python, files, from}) {
      if (layer) layers.push_back(*layer);
    }
    if (!parent.empty()) {
      const auto below = parent.front().content_layers();
      layers.insert(layers.end(), below.begin(), below.end());
    }
    return layers;
  }
  std::vector<image::LayerHash> layers_below(const image::LayerHash& layer) const {
    auto layers = content_layers();
    layers.erase(layers.begin(), std::find(layers.begin(), layers.end(), layer) + 1);
    return layers;
  }
  std::vector<image::LayerHash> all_layers() const {
    std::vector<image::LayerHash> layers = content_layers();
    layers.insert(layers.begin(), identity);
    return layers;
  }
};

Result<TemplateEngine> TemplateEngine::open(Options options) {
  ALCOVE_TRY(image::make_directories(options.data_dir + "/builds", 0700));
  ALCOVE_TRY_ASSIGN(auto store, image::LayerStore::open(options.data_dir + "/layers"));
  return TemplateEngine(std::move(options), std::move(store));
}

Result<TemplateEngine::Plan> TemplateEngine::plan(const Recipe& recipe, int depth) const {
  Plan plan;
  plan.recipe = &recipe;
  Build& build = plan.build;
  build.hostname = kDefaultHostname;
  build.default_user = kDefaultUser;
  std::string below;
  if (recipe.from.kind == From::Kind::kTemplate) {
    const Recipe* parent = options_.recipes.find(recipe.from.source);
    if (parent == nullptr) {
      return fail(Code::kNotFound, cat("there is no recipe named ", recipe.from.source));
    }
    if (depth >= kMaxDepth) return fail(Code::kInvalidArgument, "templates start from each other");
    ALCOVE_TRY_ASSIGN(Plan parent_plan, this->plan(*parent, depth + 1));
    build = parent_plan.build;
    for (const auto& layer : parent_plan.content_layers()) below += layer.str() + "\n";
    plan.parent.push_back(std::move(parent_plan));
  } else {
    ALCOVE_TRY_ASSIGN(const std::string source, hash_from(recipe.from));
    plan.from = layer_hash("from", "", source);
    below = plan.from->str();
  }
  // A child without files of its own has its parent's host files.
  const bool needs_host_files = plan.parent.empty() || recipe.hostname.has_value();
  build.hostname = recipe.hostname.value_or(build.hostname);
  build.default_user = recipe.user.value_or(build.default_user);
  // Another user than the parent's has another home.
  build.workdir = recipe.workdir.value_or(recipe.user ? "" : build.workdir);
  for (const auto& [name, value] : recipe.envs) build.envs[name] = value;
  ALCOVE_TRY_ASSIGN(plan.file_plan,
                    plan_files(recipe, needs_host_files ? build.hostname : std::string()));
  if (!plan.file_plan.empty()) {
    ALCOVE_TRY_ASSIGN(const std::string files, hash_plan(plan.file_plan));
    plan.files = layer_hash("files", below, files);
    below = plan.files->str();
  }
  if (recipe.python) {
    ALCOVE_TRY_ASSIGN(const std::string python, hash_python(*recipe.python));
    plan.python = layer_hash("python", below, python);
    below = plan.python->str();
  }
  if (!recipe.steps.empty()) {
    plan.steps = layer_hash("steps", below, steps_text(recipe, build.envs));
    below = plan.steps->str();
  }
  const Recipe* shown = recipe.replaces.empty() ? &recipe : options_.recipes.find(recipe.replaces);
  if (shown == nullptr) {
    return fail(Code::kNotFound, cat("there is no recipe named ", recipe.replaces));
  }
  build.template_name = shown->name;
  build.aliases = shown->aliases;
  build.limits = shown->limits;
  build.description = recipe.description.empty() ? shown->description : recipe.description;
  build.interpreter = build.interpreter || recipe.interpreter;
  build.template_id = template_id_of(build.template_name);
  // Over the settings too, inherited ones included: a changed limit makes a new build.
  build.hash.clear();
  build.hash = layer_hash("build", below, serialize_build(build, plan.content_layers())).str();
  build.build_id = build_id_of(build.hash);
  plan.identity = layer_hash("identity", below, build.hash);
  return plan;
}

std::optional<Build> TemplateEngine::find(const Recipe& recipe) const {
  auto planned = plan(recipe, 0);
  return planned ? find_build(planned->build.hash) : std::nullopt;
}

Result<Build> TemplateEngine::ensure(const Recipe& recipe, const Progress& progress) {
  auto planned = plan(recipe, 0);
  if (!planned) return fail(std::move(planned).error().context(cat("template ", recipe.name)));
  if (auto found = find_build(planned->build.hash)) return std::move(*found);
  if (progress) progress(cat("building template ", recipe.name));
  if (auto made = make_layers(*planned, progress); !made) {
    return fail(std::move(made).error().context(cat("template ", recipe.name)));
  }
  Build build = planned->build;
  const auto layers = planned->all_layers();
  ALCOVE_TRY(image::replace_file(build_path(build.hash), serialize_build(build, layers), 0600));
  build.layers = paths(layers);
  if (progress) progress(cat("template ", recipe.name, " is ready"));
  return build;
}

Result<void> TemplateEngine::make_layers(const Plan& plan, const Progress& progress) const {
  if (!plan.parent.empty()) ALCOVE_TRY(make_layers(plan.parent.front(), progress));
  if (plan.from) {
    ALCOVE_TRY(make_layer(*plan.from, [&](const image::LayerStage& stage) {
      return make_from_layer(plan.recipe->from, stage, progress, options_.canceled);
    }));
  }
  if (plan.files) {
    ALCOVE_TRY(make_layer(*plan.files, [&](const image::LayerStage& stage) {
      return write_files(plan.file_plan, stage.root(), paths(plan.layers_below(*plan.files)));
    }));
  }
  if (plan.python) {
    ALCOVE_TRY(make_layer(*plan.python, [&](const image::LayerStage& stage) {
      return make_python_layer(plan, stage, progress);
    }));
  }
  if (plan.steps) {
    ALCOVE_TRY(make_layer(*plan.steps, [&](const image::LayerStage& stage) {
      return make_steps_layer(plan, stage, progress);
    }));
  }
  return make_layer(plan.identity, [&](const image::LayerStage& stage) {
    return image::replace_file(stage.root() + "/.e2b", identity_file(plan.build), 0644);
  });
}

Result<void> TemplateEngine::make_python_layer(const Plan& plan, const image::LayerStage& stage,
                                               const Progress& progress) const {
  // A layer of its own on top, so that the wheels are seen inside and are no part of the result.
  const std::string wheels_root = stage.scratch() + "/wheels";
  ALCOVE_TRY(fetch_wheels(*plan.recipe->python, wheels_root, stage.lock_fd(), progress,
                          options_.canceled));
  StepJob job;
  job.steps = python_install_steps(*plan.recipe->python);
  job.layers = {wheels_root};
  return run_in_jail(std::move(job), plan, *plan.python, stage, progress);
}

Result<void> TemplateEngine::make_steps_layer(const Plan& plan, const image::LayerStage& stage,
                                              const Progress& progress) const {
  StepJob job;
  job.steps = plan.recipe->steps;
  job.envs = plan.build.envs;
  return run_in_jail(std::move(job), plan, *plan.steps, stage, progress);
}

Result<void> TemplateEngine::run_in_jail(StepJob job, const Plan& plan,
                                         const image::LayerHash& target,
                                         const image::LayerStage& stage,
                                         const Progress& progress) const {
  if (options_.driver == nullptr) {
    return fail(Code::kFailedPrecondition,
                "the recipe has steps, but there is no jail to run them");
  }
  job.canceled = options_.canceled;
  const auto below = paths(plan.layers_below(target));
  job.layers.insert(job.layers.end(), below.begin(), below.end());
  job.upper_dir = stage.root();
  job.work_dir = stage.scratch() + "/work";
  job.step_program = stage.scratch() + "/alcove-step";
  job.hostname = plan.build.hostname;
  job.ca_bundle = options_.ca_bundle;
  ALCOVE_TRY(image::make_directories(job.work_dir, 0755));
  ALCOVE_TRY(copy_program(options_.step_program, job.step_program));
  ALCOVE_TRY(run_steps(*options_.driver, job, progress));
  // Steps may give the root directory away, but cannot reach the work directory.
  struct stat st{};
  if (::lstat(job.work_dir.c_str(), &st) != 0) return fail_errno(errno, job.work_dir);
  ALCOVE_TRY(clear_directory(stage.root() + "/tmp"));
  return image::shift_owners(stage.root(), st.st_uid);
}

template <typename Make>
Result<void> TemplateEngine::make_layer(const image::LayerHash& hash, const Make& make) const {
  if (store_.has(hash)) return {};
  ALCOVE_TRY_ASSIGN(UniqueFd lock, store_.lock(hash));
  if (store_.has(hash)) return {};
  ALCOVE_TRY_ASSIGN(image::LayerStage stage, store_.stage());
  ALCOVE_TRY(make(stage));
  return store_.commit(std::move(stage), hash);
}

std::optional<Build> TemplateEngine::find_build(const std::string& hash) const {
  if (!image::is_layer_hash(hash)) return {};
  auto text = image::read_file(build_path(hash));
  if (!text) return {};
  auto stored = parse_build(*text);
  if (!stored || stored->build.hash != hash) return {};
  for (const image::LayerHash& layer : stored->layers) {
    if (!store_.has(layer)) return {};
  }
  stored->build.layers = paths(stored->layers);
  return std::move(stored->build);
}

Result<std::vector<Build>> TemplateEngine::list_builds() const {
  ALCOVE_TRY_ASSIGN(const auto names, image::list_directory(options_.data_dir + "/builds"));
  std::vector<Build> builds;
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    if (auto build = find_build(name.substr(0, name.size() - 5))) {
      builds.push_back(std::move(*build));
    }
  }
  return builds;
}

std::vector<std::string> TemplateEngine::paths(const std::vector<image::LayerHash>& layers) const {
  std::vector<std::string> result;
  for (const image::LayerHash& layer : layers) result.push_back(store_.path(layer));
  return result;
}

std::string TemplateEngine::build_path(const std::string& hash) const {
  return cat(options_.data_dir, "/builds/", hash, ".json");
}

}  // namespace alcove::templates
