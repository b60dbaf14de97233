// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/run_command.h"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/serialize.hpp>

namespace alcove::cli {

Result<int> with_server(const ClientFlags& flags,
                        const std::function<Task<Result<int>>(Server&)>& command) {
  ALCOVE_TRY_ASSIGN(const ClientSettings settings,
                    find_client_settings(flags, process_environment));
  // Outlives the connections that the server object keeps.
  boost::asio::io_context loop(1);
  ALCOVE_TRY_ASSIGN(Server server, Server::open(settings));
  std::optional<Result<int>> outcome;
  boost::asio::co_spawn(loop, command(server),
                        [&](const std::exception_ptr& failure, Result<int> result) {
                          if (failure) std::rethrow_exception(failure);
                          outcome = std::move(result);
                          // A deadline that did not come to pass would keep it going.
                          loop.stop();
                        });
  loop.run();
  return outcome ? std::move(*outcome) : fail(Code::kInternal, "the command did not end");
}

Result<void> print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "write the output");
    text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> print_json(const boost::json::value& value) {
  return print(boost::json::serialize(value) + "\n");
}

}  // namespace alcove::cli
