// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/step_runner.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/defer.h"
#include "base/ids.h"
#include "base/strings.h"
#include "image/line_tail.h"
#include "template/step_protocol.h"

namespace alcove::templates {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookForCancel{200};
constexpr uint64_t kBuildMemory = 4ull << 30;
constexpr uint32_t kBuildPids = 4096;
constexpr uint32_t kBuildVcpus = 4;
// Build jails share prepared resources with each other, never with sandboxes.
constexpr const char* kPoolKey = "build";
// OpenSSL and curl, pip, requests, Node, git.
constexpr std::array kCaBundleVariables = {"SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE",
                                           "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"};

std::vector<std::string> step_arguments(const StepJob& job) {
  std::map<std::string, std::string> envs = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", "/root"},
      {"USER", "root"},
      {"DEBIAN_FRONTEND", "noninteractive"},
  };
  if (!job.ca_bundle.empty()) {
    for (const char* name : kCaBundleVariables) envs[name] = sandbox::kCaBundleInside;
  }
  for (const auto& [name, value] : job.envs) envs[name] = value;
  std::vector<std::string> arguments;
  for (const auto& [name, value] : envs) arguments.push_back(cat(name, "=", value));
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), job.steps.begin(), job.steps.end());
  return arguments;
}

std::string first_line(std::string_view command) {
  command = trim(command);
  const size_t end = command.find('\n');
  std::string line(command.substr(0, std::min<size_t>(end, 120)));
  if (line.size() < command.size()) line += " ...";
  return line;
}

// Follows one run from begin to done.
class Follower {
 public:
  Follower(const StepJob& job, const Progress& progress) : job_(job), progress_(progress) {}

  // True when all steps are done.
  Result<bool> handle(const StepFrameReader::Frame& frame) {
    switch (frame.type) {
      case StepFrame::kBegin:
        return begin(decode_number(frame.payload));
      case StepFrame::kOutput:
        output_.append(frame.payload);
        return false;
      case StepFrame::kEnd:
        return end(decode_number(frame.payload));
      case StepFrame::kError:
        return fail(Code::kInternal, cat(name(), "alcove-step: ", frame.payload.substr(0, 1000)));
      case StepFrame::kDone:
        if (ended_ != job_.steps.size()) break;
        return true;
    }
    return fail(malformed());
  }

  Error stopped(std::string_view why) {
    output_.finish();
    return Error(Code::kAborted, cat(name(), why, tail_text()));
  }

 private:
  static Error malformed() {
    return Error(Code::kInvalidArgument, "malformed message from the build jail");
  }

  Result<bool> begin(std::optional<uint32_t> index) {
    if (!index || *index != ended_ || *index >= job_.steps.size()) return fail(malformed());
    if (progress_) progress_(name() + first_line(job_.steps[ended_]));
    output_ = image::LineTail(progress_);
    return false;
  }

  Result<bool> end(std::optional<uint32_t> status) {
    if (!status || ended_ >= job_.steps.size()) return fail(malformed());
    output_.finish();
    if (*status != 0) {
      return fail(Code::kFailedPrecondition,
                  cat(name(), "`", first_line(job_.steps[ended_]), "` failed with exit status ",
                      *status, tail_text()));
    }
    ++ended_;
    return false;
  }

  std::string name() const {
    return cat("step ", std::min(ended_ + 1, job_.steps.size()), "/", job_.steps.size(), ": ");
  }
  std::string tail_text() const {
    const std::string tail = output_.tail();
    return tail.empty() ? " (no output)" : ":\n" + tail;
  }

  const StepJob& job_;
  const Progress& progress_;
  size_t ended_ = 0;
  image::LineTail output_{nullptr};
};

Result<void> follow(int socket, const StepJob& job, const Progress& progress) {
  const auto deadline = SteadyClock::now() + job.timeout;
  Follower follower(job, progress);
  StepFrameReader reader;
  char buffer[32 << 10];
  while (true) {
    ALCOVE_TRY_ASSIGN(auto frame, reader.next());
    if (frame) {
      ALCOVE_TRY_ASSIGN(const bool done, follower.handle(*frame));
      if (done) return {};
      continue;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) {
      return fail(follower.stopped(cat("not finished after ", job.timeout.count(), " s")));
    }
    if (job.canceled != nullptr && job.canceled->load()) return fail(follower.stopped("stopped"));
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(std::min(left, kLookForCancel).count())) <= 0) continue;
    const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
    if (n > 0) {
      reader.append(std::string_view(buffer, static_cast<size_t>(n)));
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      return fail(follower.stopped("the build jail ended unexpectedly (out of memory?)"));
    }
  }
}

}  // namespace

Result<void> run_steps(sandbox::Driver& driver, const StepJob& job, const Progress& progress) {
  sandbox::BootSpec spec;
  spec.id = make_sandbox_id();
  spec.pool_key = kPoolKey;
  spec.layers = job.layers;
  spec.upper_dir = job.upper_dir;
  spec.work_dir = job.work_dir;
  spec.limits.memory_bytes = kBuildMemory;
  spec.limits.pids = kBuildPids;
  spec.limits.vcpu_count = kBuildVcpus;
  spec.hostname = job.hostname;
  spec.agent_path = job.step_program;
  spec.agent_args = step_arguments(job);
  spec.ca_bundle = job.ca_bundle;
  spec.egress.reach = network::EgressPolicy::Reach::kInternet;
  auto machine = driver.boot(spec);
  if (!machine) return fail(std::move(machine).error().context("start the build jail"));

  auto result = [&]() -> Result<void> {
    ALCOVE_TRY_ASSIGN(UniqueFd socket,
                      (*machine)->connect(spec.agent_port, sandbox::Machine::Family::kV4));
    return follow(socket.get(), job, progress);
  }();
  (*machine)->kill();
  auto destroyed = (*machine)->destroy();
  ALCOVE_TRY(std::move(result));
  if (!destroyed) return fail(std::move(destroyed).error().context("remove the build jail"));
  return {};
}

}  // namespace alcove::templates
