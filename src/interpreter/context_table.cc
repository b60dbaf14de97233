// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/context_table.h"

#include <sys/stat.h>

#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"

namespace alcove::interpreter {
namespace {

// A loop that makes contexts ends with a clear error: in a large sandbox by this number, in others
// by the memory that is left. Without that, kernels with somebody's variables would be killed.
constexpr size_t kMaxContexts = 256;
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
// A kernel of any language, and something to begin with.
constexpr uint64_t kMemoryOfOne = 128 * kMebibyte;

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Task<void> warm_up(std::shared_ptr<Context> context) {
  const auto started = co_await context->warm_up();
  if (!started) log_error(cat(context->info().language, ": ", started.error().message()));
}

}  // namespace

void ContextTable::start() {
  for (const char* language : {"python", "javascript"}) {
    const auto context = find_default(language);
    if (!context) continue;
    if (std::string_view(language) == "python") net::spawn(executor_, warm_up(*context));
  }
}

Result<ContextTable::ContextPtr> ContextTable::add(const std::string& language,
                                                   const std::string& cwd) {
  if (contexts_.size() >= kMaxContexts) {
    return fail(Code::kResourceExhausted, cat("there are ", kMaxContexts, " contexts already"));
  }
  auto make_kernel = [this, language, cwd] {
    // Directories vanish, and a root without that home still has a place to be.
    KernelSetup setup{.directory = "/", .environment = options_.environment};
    for (const std::string& wanted : {options_.directory, cwd}) {
      if (is_directory(wanted)) setup.directory = wanted;
    }
    return factory_(language, std::move(setup));
  };
  // Whether there is such a kernel is known before the context is.
  ALCOVE_TRY_ASSIGN(const auto kernel, make_kernel());
  auto context = std::make_shared<Context>(
      executor_, Context::Info{.id = make_uuid(), .language = language, .cwd = cwd},
      std::move(make_kernel));
  contexts_.push_back(context);
  return context;
}

Task<Result<ContextTable::ContextPtr>> ContextTable::create(const std::string& language,
                                                            const std::string& cwd) {
  if (cwd.find('\0') != std::string::npos) {
    co_return fail(Code::kInvalidArgument, "cwd must not contain NUL bytes");
  }
  std::string directory = cwd.empty() ? options_.directory : cwd;
  if (!directory.starts_with('/')) directory = cat(options_.directory, "/", directory);
  if (!cwd.empty() && !is_directory(directory)) {
    co_return fail(Code::kInvalidArgument, cat("cwd '", cwd, "' is not a directory"));
  }
  if (const auto memory = options_.free_memory(); memory && *memory < kMemoryOfOne) {
    co_return fail(Code::kResourceExhausted,
                   cat("not enough memory for one more context: ", *memory / kMebibyte,
                       " MiB are free, and it needs ", kMemoryOfOne / kMebibyte,
                       " MiB; remove contexts that are not used"));
  }
  ALCOVE_CO_TRY_ASSIGN(ContextPtr context, add(language, directory));
  if (auto started = co_await context->warm_up(); !started) {
    co_await remove(context);
    co_return fail(std::move(started).error());
  }
  co_return context;
}

Result<ContextTable::ContextPtr> ContextTable::find_default(const std::string& language) {
  const auto found = defaults_.find(language);
  if (found != defaults_.end()) return found->second;
  ALCOVE_TRY_ASSIGN(ContextPtr context, add(language, options_.directory));
  defaults_[language] = context;
  return context;
}

ContextTable::ContextPtr ContextTable::find(std::string_view id) const {
  for (const ContextPtr& context : contexts_) {
    if (context->info().id == id) return context;
  }
  return nullptr;
}

void ContextTable::forget(const ContextPtr& context) {
  std::erase(contexts_, context);
  std::erase_if(defaults_, [&](const auto& entry) { return entry.second == context; });
}

Task<void> ContextTable::remove(ContextPtr context) {
  forget(context);
  co_await context->remove();
}

}  // namespace alcove::interpreter
