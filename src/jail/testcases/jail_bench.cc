// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// jail_bench <alcove-jail> <alcove-relay> <agent> <layer dir> [boots] [kept]: how long a boot takes
// until the agent has accepted a connection, and what an idle sandbox costs. Needs root.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/strings.h"
#include "jail/jail_driver.h"
#include "sys/file_io.h"

namespace {

using alcove::sandbox::Machine;
using std::chrono::duration;
using std::chrono::steady_clock;

struct Bench {
  std::string data_dir;
  std::string layer;
  std::unique_ptr<alcove::jail::JailDriver> driver;
};

double since(steady_clock::time_point start) {
  return duration<double, std::micro>(steady_clock::now() - start).count();
}

void print(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  std::printf("%-28s median %7.0f us  min %7.0f  p99 %7.0f\n", what, times[times.size() / 2],
              times.front(), times[times.size() * 99 / 100]);
}

[[noreturn]] void give_up(const alcove::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}

std::unique_ptr<Machine> boot(Bench& bench) {
  alcove::sandbox::BootSpec spec;
  spec.id = alcove::make_sandbox_id();
  spec.pool_key = "bench";
  spec.layers = {bench.layer};
  const std::string own = bench.data_dir + "/" + spec.id.str();
  std::filesystem::create_directories(own + "/upper");
  std::filesystem::create_directories(own + "/work");
  spec.upper_dir = own + "/upper";
  spec.work_dir = own + "/work";
  spec.hostname = "bench";
  spec.agent_path = bench.data_dir + "/agent";
  auto machine = bench.driver->boot(spec);
  if (!machine) give_up(machine.error());
  return std::move(*machine);
}

// Until the agent has taken the connection and closed it again.
void wait_for_agent(Machine& machine) {
  auto fd = machine.connect(49983, Machine::Family::kV4);
  if (!fd) give_up(fd.error());
  pollfd waiting{fd->get(), POLLOUT, 0};
  ::poll(&waiting, 1, 10'000);
  ::send(fd->get(), "\n\n", 2, MSG_NOSIGNAL);
  waiting.events = POLLIN;
  ::poll(&waiting, 1, 10'000);
}

// What the kernel holds for sandboxes. MemAvailable would count the neighbours' programs too.
long kernel_kilobytes() {
  const auto text = alcove::sys::read_file("/proc/meminfo");
  long sum = 0;
  for (const char* name : {"SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:", "Shmem:"}) {
    const char* at = std::strstr(text->c_str(), name);
    sum += std::strtol(at + std::strlen(name), nullptr, 10);
  }
  return sum;
}

void measure_boots(Bench& bench, int boots) {
  std::vector<double> booted, answered, killed, destroyed;
  for (int i = 0; i < boots + 5; ++i) {
    auto start = steady_clock::now();
    auto machine = boot(bench);
    const double boot_time = since(start);
    wait_for_agent(*machine);
    const double answer_time = since(start);
    start = steady_clock::now();
    machine->kill();
    pollfd waiting{machine->exit_fd(), POLLIN, 0};
    ::poll(&waiting, 1, 10'000);
    const double kill_time = since(start);
    if (const auto done = machine->destroy(); !done) give_up(done.error());
    if (i < 5) continue;
    booted.push_back(boot_time);
    answered.push_back(answer_time);
    killed.push_back(kill_time);
    destroyed.push_back(since(start));
    // Lets the pool refill, as it would between the creates of a quiet server.
    ::usleep(20'000);
  }
  print("boot", booted);
  print("boot to first answer", answered);
  print("kill to end of pid 1", killed);
  print("kill to destroyed", destroyed);
}

void measure_memory(Bench& bench, int kept) {
  std::vector<std::unique_ptr<Machine>> machines;
  const auto start = steady_clock::now();
  const long before = kernel_kilobytes();
  for (int i = 0; i < kept; ++i) machines.push_back(boot(bench));
  const double seconds = since(start) / 1e6;
  const long after = kernel_kilobytes();
  std::printf("%d sandboxes: %.0f/s, %ld KiB of kernel memory each\n", kept, kept / seconds,
              (after - before) / kept);
  for (auto& machine : machines) machine->kill();
  for (auto& machine : machines) (void)machine->destroy();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  Bench bench;
  bench.data_dir = alcove::cat("/tmp/alcove-bench-", alcove::random_alphanumeric(8));
  std::filesystem::create_directories(bench.data_dir);
  std::filesystem::copy_file(argv[3], bench.data_dir + "/agent");
  bench.layer = std::filesystem::canonical(argv[4]);
  auto relay = alcove::relay::RelayClient::start(
      {.program = argv[2], .data_dir = bench.data_dir, .resolvers = {}});
  if (!relay) give_up(relay.error());
  const std::shared_ptr<alcove::relay::RelayClient> shared_relay = std::move(*relay);
  auto driver = alcove::jail::JailDriver::create({.launcher_path = argv[1],
                                                  .data_dir = bench.data_dir,
                                                  .extra_dirs = {bench.layer},
                                                  .cgroup_prefix = {},
                                                  .relay = shared_relay});
  if (!driver) give_up(driver.error());
  bench.driver = std::move(*driver);
  bench.driver->warm("bench");
  ::usleep(100'000);
  measure_boots(bench, argc > 5 ? std::atoi(argv[5]) : 200);
  if (argc > 6) measure_memory(bench, std::atoi(argv[6]));
  bench.driver.reset();
  (void)shared_relay->stop();
  std::filesystem::remove_all(bench.data_dir);
  return 0;
}
