// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// alcove-interpreter: runs code in contexts, inside a sandbox, for code-interpreter clients.

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/reaper.h"
#include "base/log.h"
#include "base/strings.h"
#include "http/server.h"
#include "interpreter/context_table.h"
#include "interpreter/jupyter_kernel.h"
#include "interpreter/kernel_processes.h"
#include "interpreter/languages.h"
#include "interpreter/memory_left.h"
#include "interpreter/process_list.h"
#include "interpreter/runner_files.h"
#include "interpreter/runner_kernel.h"
#include "interpreter/service.h"
#include "net/event_loops.h"
#include "net/listener.h"

namespace alcove::interpreter {
namespace {

constexpr std::string_view kUsage =
    "alcove-interpreter: runs code for code-interpreter clients, inside a sandbox\n"
    "  --listen-fd N    serve on this listening socket\n"
    "  --port N         listen on all addresses (default 49999)\n"
    "  --runners DIR    where the language runners are written (default /run/alcove-interpreter)\n"
    "  --directory DIR  the contexts' working directory (default /home/user)\n";
constexpr uint16_t kDefaultPort = 49999;

struct Flags {
  std::optional<int> listen_fd;
  uint16_t port = kDefaultPort;
  std::string runners = "/run/alcove-interpreter";
  std::string directory = "/home/user";
};

std::optional<Flags> parse_flags(int argc, char** argv) {
  Flags flags;
  if (argc % 2 == 0) return {};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--listen-fd") {
      flags.listen_fd = parse_number<int>(value);
      if (!flags.listen_fd || *flags.listen_fd < 0) return {};
    } else if (name == "--port") {
      const auto port = parse_number<uint16_t>(value);
      if (!port) return {};
      flags.port = *port;
    } else if (name == "--runners") {
      flags.runners = value;
    } else if (name == "--directory") {
      flags.directory = value;
    } else {
      return {};
    }
  }
  return flags;
}

void set_up_process() {
  ::umask(022);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

// Kernels of an interpreter that was killed, busy so that they have not noticed.
void kill_orphans(const std::string& runners) {
  const std::string mark = cat(std::string_view("\0", 1), runners, "/");
  for (const ProcessEntry& process : list_processes()) {
    if (process.pid != process.session || process.pid == ::getpid()) continue;
    if (process_arguments(process.pid).find(mark) != std::string::npos) kill_kernel(process.pid);
  }
}

std::vector<std::string> kernel_environment() {
  std::vector<std::string> variables;
  bool has_locale = false;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    has_locale = has_locale || text.starts_with("LANG=") || text.starts_with("LC_ALL=");
    variables.emplace_back(text);
  }
  // What is printed is read as UTF-8.
  if (!has_locale) variables.emplace_back("LANG=C.UTF-8");
  return variables;
}

Result<UniqueFd> open_listener(const Flags& flags) {
  if (flags.listen_fd) return UniqueFd(*flags.listen_fd);
  return net::make_listener("0.0.0.0", flags.port);
}

Result<void> run(const Flags& flags) {
  set_up_process();
  ALCOVE_TRY_ASSIGN(UniqueFd listener, open_listener(flags));
  kill_orphans(flags.runners);
  ALCOVE_TRY(write_runner_files(flags.runners));
  boost::asio::io_context loop(/*concurrency_hint=*/1);
  ALCOVE_TRY_ASSIGN(const auto reaper, agent::ChildReaper::create(loop.get_executor()));
  net::spawn(loop, reaper->run());
  const char* path = ::getenv("PATH");
  const std::string path_variable = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  ContextTable contexts(
      loop.get_executor(),
      [&](const std::string& language, KernelSetup setup) -> Result<std::unique_ptr<Kernel>> {
        ALCOVE_TRY_ASSIGN(auto command, runner_command(language, flags.runners, path_variable));
        if (!command) {
          return make_jupyter_kernel(loop.get_executor(), *reaper, language, std::move(setup), {});
        }
        return std::make_unique<RunnerKernel>(loop.get_executor(), *reaper, *std::move(command),
                                              std::move(setup));
      },
      {.directory = flags.directory, .environment = kernel_environment(), .free_memory = [] {
         return memory_left();
       }});
  Service service(loop.get_executor(), contexts);
  http::Server server(loop, [&](http::Exchange& exchange) { return service.handle(exchange); });
  ALCOVE_TRY(server.serve(std::move(listener)));
  contexts.start();
  loop.run();
  return fail(Code::kInternal, "the loop has ended");
}

}  // namespace
}  // namespace alcove::interpreter

int main(int argc, char** argv) {
  using namespace alcove::interpreter;
  const auto flags = parse_flags(argc, argv);
  if (!flags) {
    (void)!::write(2, kUsage.data(), kUsage.size());
    return 2;
  }
  ::prctl(PR_SET_NAME, "alcove-interp");
  const auto result = run(*flags);
  alcove::log_error(result.error().message());
  return 1;
}
