// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "interpreter/context.h"

namespace alcove::interpreter {

// All contexts, in the order in which they were made, and which of them are the defaults of their
// languages. Belongs to one loop.
class ContextTable {
 public:
  // Makes a kernel of a language, not started; kNotFound if there is none.
  using KernelFactory =
      std::function<Result<std::unique_ptr<Kernel>>(const std::string& language, KernelSetup)>;

  struct Options {
    // Of default contexts, and what relative directories are relative to.
    std::string directory = "/home/user";
    // Of all kernels.
    std::vector<std::string> environment;
    // Bytes that a further kernel could have; nothing if that is not known.
    std::function<std::optional<uint64_t>()> free_memory = [] { return std::optional<uint64_t>(); };
  };

  ContextTable(const boost::asio::any_io_executor& executor, KernelFactory factory, Options options)
      : executor_(executor), factory_(std::move(factory)), options_(std::move(options)) {}

  // The two that are always listed; Python's kernel starts.
  void start();

  using ContextPtr = std::shared_ptr<Context>;
  // A new one whose kernel runs. kInvalidArgument for a directory that cannot be one,
  // kResourceExhausted if there are too many, or so little memory that a kernel would have to end
  // for it.
  Task<Result<ContextPtr>> create(const std::string& language, const std::string& cwd);
  // Made if there is none; its kernel may not run yet.
  Result<ContextPtr> find_default(const std::string& language);
  // Nothing if unknown.
  ContextPtr find(std::string_view id) const;
  const std::vector<ContextPtr>& list() const { return contexts_; }
  Task<void> remove(ContextPtr context);

 private:
  Result<ContextPtr> add(const std::string& language, const std::string& cwd);
  void forget(const ContextPtr& context);

  boost::asio::any_io_executor executor_;
  KernelFactory factory_;
  Options options_;
  std::vector<ContextPtr> contexts_;
  std::map<std::string, ContextPtr> defaults_;
};

}  // namespace alcove::interpreter
