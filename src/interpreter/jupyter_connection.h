// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"

namespace alcove::interpreter {

// Where a Jupyter kernel's sockets are, and the key of its messages: Unix sockets in a directory
// of its own that only root can enter, removed at the end.
class JupyterConnection {
 public:
  enum class Channel { kShell = 1, kIopub, kStdin, kControl, kHeartbeat };

  // Makes `<runtime_dir>/<random>/` with the connection file in it.
  static Result<JupyterConnection> create(const std::string& runtime_dir,
                                          const std::string& kernel_name);
  ~JupyterConnection();
  JupyterConnection(JupyterConnection&& other) noexcept;
  JupyterConnection& operator=(JupyterConnection&&) = delete;

  const std::string& key() const { return key_; }
  std::string file() const { return dir_ + "/connection.json"; }
  // "ipc:///..."; the kernel makes the socket.
  std::string endpoint(Channel channel) const;

 private:
  JupyterConnection(std::string dir, std::string key);

  std::string dir_;
  std::string key_;
};

}  // namespace alcove::interpreter
