// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/agent_client.h"
#include "cli/progress.h"
#include "net/task.h"

namespace alcove::cli {

// What a sandbox says about one of its files. Hostile: check `name` before using it as one.
struct RemoteEntry {
  enum class Kind { kFile, kDirectory, kOther };
  std::string name;
  // Of what a link leads to.
  Kind kind = Kind::kOther;
  bool is_link = false;
  uint64_t size = 0;
  unsigned mode = 0644;
};
Result<RemoteEntry> parse_entry(const boost::json::object& entry);

// Files of a sandbox, moved in pieces: memory does not grow with them.
class RemoteFiles {
 public:
  explicit RemoteFiles(AgentClient& agent) : agent_(agent) {}

  // Nothing if there is none.
  Task<Result<std::optional<RemoteEntry>>> find(std::string path);
  Task<Result<std::vector<RemoteEntry>>> list(std::string path);
  // With all parents; success if it is there.
  Task<Result<void>> make_dir(std::string path);
  // `size` bytes from where `fd` stands.
  Task<Result<void>> upload(int fd, uint64_t size, std::string path, Progress& progress);
  Task<Result<void>> download(std::string path, int fd, Progress& progress);
  // Permissions of uploaded files, by a `chmod` inside.
  Task<Result<void>> set_modes(const std::map<unsigned, std::vector<std::string>>& paths_by_mode);

 private:
  Task<Result<void>> send_pieces(http::ClientConnection& connection, int fd, uint64_t size,
                                 const std::string& path, Progress& progress);
  Task<Result<int>> run(std::vector<std::string> command);

  AgentClient& agent_;
};

}  // namespace alcove::cli
