// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace alcove::doctor {
namespace {

// A call that hangs must not take the doctor along.
constexpr unsigned kLimitSeconds = 10;

}  // namespace

Result<void> in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child == 0) {
    ::alarm(kLimitSeconds);
    ::_exit(body());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(errno, "waitpid");
  }
  if (!WIFEXITED(status)) return fail(Code::kInternal, "the attempt was killed or did not end");
  if (const int error = WEXITSTATUS(status); error != 0) {
    return fail(Error(Error::from_errno(error, "").code(), std::strerror(error)));
  }
  return {};
}

}  // namespace alcove::doctor
