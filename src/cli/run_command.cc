// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/run_command.h"

#include <unistd.h>

#include <exception>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/serialize.hpp>

#include "cli/standard_io.h"

namespace alcove::cli {

Result<int> with_server(const ClientFlags& flags,
                        const std::function<Task<Result<int>>(Server&)>& command) {
  ALCOVE_TRY_ASSIGN(const ClientSettings settings,
                    find_client_settings(flags, process_environment));
  // Outlives the connections that the server object keeps.
  boost::asio::io_context loop(1);
  ALCOVE_TRY_ASSIGN(Server server, Server::open(settings));
  Result<int> outcome = fail(Code::kInternal, "the command did not end");
  boost::asio::co_spawn(
      loop, command(server), [&](const std::exception_ptr& failure, Result<int> result) {
        outcome = failure ? fail(Code::kInternal, "the command broke off") : std::move(result);
        // A deadline that did not come to pass would keep it going.
        loop.stop();
      });
  loop.run();
  return outcome;
}

Result<void> print(std::string_view text) { return write_all(STDOUT_FILENO, text); }

Result<void> print_json(const boost::json::value& value) {
  return print(boost::json::serialize(value) + "\n");
}

}  // namespace alcove::cli
