// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"
#include "cli/client_settings.h"
#include "cli/server.h"
#include "net/task.h"

namespace alcove::cli {

// How a command shows its result: for people or for programs.
enum class Format { kText, kJson };

// What a command ends with when nothing fails; `exec` passes other programs' codes on.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 2;

// Finds the server and runs a task that talks to it, on a loop of its own. The result is the
// program's exit code.
Result<int> with_server(const ClientFlags& flags,
                        const std::function<Task<Result<int>>(Server&)>& command);

// All of it to standard output, at once.
Result<void> print(std::string_view text);
// As one line.
Result<void> print_json(const boost::json::value& value);

}  // namespace alcove::cli
