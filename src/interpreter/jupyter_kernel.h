// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "agent/reaper.h"
#include "base/result.h"
#include "interpreter/kernel.h"

namespace alcove::interpreter {

struct JupyterOptions {
  // Connection files and sockets; short, because paths of sockets are.
  std::string runtime_dir = "/run/alcove-interpreter/jupyter";
};

// A kernel of a language without a runner of ours: the installed Jupyter kernel of that name or
// language (jupyter_kernel_spec.h), searched by the variables in `setup`. kNotFound ("No such
// kernel: x") if there is none. Used like any other kernel:
//   auto kernel = make_jupyter_kernel(executor, reaper, "r", setup, {});
//   co_await (*kernel)->start();
// Variables of one run are set in R only; other kernels ignore them.
Result<std::unique_ptr<Kernel>> make_jupyter_kernel(const boost::asio::any_io_executor& executor,
                                                    agent::ChildReaper& reaper,
                                                    std::string_view language, KernelSetup setup,
                                                    JupyterOptions options);

}  // namespace alcove::interpreter
