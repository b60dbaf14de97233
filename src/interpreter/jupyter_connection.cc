// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_connection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/ids.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::interpreter {
namespace {

constexpr size_t kNameBytes = 8;
constexpr size_t kKeyBytes = 32;

int port_of(JupyterConnection::Channel channel) { return static_cast<int>(channel); }

}  // namespace

Result<JupyterConnection> JupyterConnection::create(const std::string& runtime_dir,
                                                    const std::string& kernel_name) {
  std::error_code error;
  std::filesystem::create_directories(runtime_dir, error);
  if (error) return fail_errno(error.value(), cat("make ", runtime_dir));
  const std::string dir = cat(runtime_dir, '/', random_hex(kNameBytes));
  if (::mkdir(dir.c_str(), 0700) != 0) return fail_errno(errno, cat("make ", dir));
  JupyterConnection connection(dir, random_hex(kKeyBytes));
  const boost::json::object content{{"transport", "ipc"},
                                    {"ip", cat(dir, "/s")},
                                    {"shell_port", port_of(Channel::kShell)},
                                    {"iopub_port", port_of(Channel::kIopub)},
                                    {"stdin_port", port_of(Channel::kStdin)},
                                    {"control_port", port_of(Channel::kControl)},
                                    {"hb_port", port_of(Channel::kHeartbeat)},
                                    {"key", connection.key_},
                                    {"signature_scheme", "hmac-sha256"},
                                    {"kernel_name", kernel_name}};
  const std::string text = boost::json::serialize(content);
  const UniqueFd file(
      ::open(connection.file().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return fail_errno(errno, cat("make ", connection.file()));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(Code::kUnavailable, cat("cannot write ", connection.file()));
  }
  return connection;
}

JupyterConnection::JupyterConnection(std::string dir, std::string key)
    : dir_(std::move(dir)), key_(std::move(key)) {}

JupyterConnection::JupyterConnection(JupyterConnection&& other) noexcept
    : dir_(std::exchange(other.dir_, {})), key_(std::move(other.key_)) {}

JupyterConnection::~JupyterConnection() {
  std::error_code ignored;
  if (!dir_.empty()) std::filesystem::remove_all(dir_, ignored);
}

std::string JupyterConnection::endpoint(Channel channel) const {
  return cat("ipc://", dir_, "/s-", port_of(channel));
}

}  // namespace alcove::interpreter
