// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/copy_command.h"

#include <cstdio>

#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/agent_client.h"
#include "cli/download_tree.h"
#include "cli/progress.h"
#include "cli/remote_files.h"
#include "cli/upload_tree.h"

namespace alcove::cli {
namespace {

Task<Result<int>> copy(Server& server, const CopyOptions& options) {
  const std::string& id =
      options.from.is_remote() ? options.from.sandbox_id : options.to.sandbox_id;
  ALCOVE_CO_TRY_ASSIGN(AgentClient agent, co_await AgentClient::open(server, id, options.user));
  RemoteFiles files(agent);
  uint64_t left_out = 0;
  boost::json::object summary;
  {
    Progress progress;
    if (options.from.is_remote()) {
      DownloadTree tree(files, progress);
      ALCOVE_CO_TRY(co_await tree.copy(options.from.path, options.to.path));
      left_out = tree.left_out();
    } else {
      UploadTree tree(files, progress);
      ALCOVE_CO_TRY(co_await tree.copy(options.from.path, options.to.path));
      left_out = tree.left_out();
    }
    summary = {{"files", progress.files()}, {"bytes", progress.bytes()}, {"leftOut", left_out}};
  }
  if (options.format == Format::kJson) ALCOVE_CO_TRY(print_json(summary));
  if (left_out > 0) {
    std::fprintf(stderr,
                 "alcove: entries left out: %llu (links to directories and special files "
                 "are not copied)\n",
                 static_cast<unsigned long long>(left_out));
  }
  co_return kSuccess;
}

}  // namespace

Result<int> copy_files(const ClientFlags& flags, const CopyOptions& options) {
  return with_server(flags, [&](Server& server) { return copy(server, options); });
}

}  // namespace alcove::cli
