// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/python_layer.h"

#include <sys/utsname.h>

#include <cerrno>
#include <chrono>

#include "base/strings.h"
#include "image/file_copy.h"
#include "image/files.h"
#include "image/run_program.h"

namespace alcove::templates {
namespace {

constexpr std::chrono::minutes kFetchTimeout(60);
// Where the layer shows the wheels.
constexpr const char* kWheels = "/opt/alcove-wheels";
// The newest C library whose wheels are taken: Debian 13 has 2.41.
constexpr int kNewestGlibc = 41;

// pip takes the platforms that it is told literally, so all that the template can load are named.
std::vector<std::string> platform_arguments(const std::string& machine) {
  std::vector<std::string> arguments;
  for (const char* name : {"linux", "manylinux1", "manylinux2010", "manylinux2014"}) {
    arguments.push_back(cat("--platform=", name, "_", machine));
  }
  for (int minor = 5; minor <= kNewestGlibc; ++minor) {
    arguments.push_back(cat("--platform=manylinux_2_", minor, "_", machine));
  }
  return arguments;
}

// pip's lines become a few of ours: how far it is, and what is fetched right now with its size.
class FetchProgress {
 public:
  FetchProgress(const Progress& progress, size_t total) : progress_(progress), total_(total) {}

  void handle(std::string_view line) {
    line = trim(line);
    const bool starts = line.starts_with("Downloading ") || line.starts_with("Using cached ");
    if (!starts || line.find(".whl.metadata") != std::string_view::npos) return;
    ++count_;
    const auto now = std::chrono::steady_clock::now();
    if (!progress_ || now - shown_ < kBetweenLines) return;
    shown_ = now;
    const size_t name = line.rfind('/', line.find(" (")) + 1;
    progress_(cat("fetching Python packages, ", count_, " of ", total_, ": ",
                  line.substr(name == 0 ? line.find(' ') + 1 : name)));
  }

 private:
  static constexpr std::chrono::seconds kBetweenLines{2};

  const Progress& progress_;
  size_t total_;
  size_t count_ = 0;
  std::chrono::steady_clock::time_point shown_;
};

size_t count_wheels(std::string_view lock) {
  size_t count = 0;
  for (size_t at = lock.find("=="); at != std::string_view::npos; at = lock.find("==", at + 2)) {
    ++count;
  }
  return count;
}

std::string without_dot(std::string text) {
  std::erase(text, '.');
  return text;
}

}  // namespace

Result<void> fetch_wheels(const PythonPackages& python, const std::string& layer_root, int lock_fd,
                          const Progress& progress, const std::atomic<bool>* canceled) {
  const std::string folder = layer_root + kWheels;
  ALCOVE_TRY(image::make_directories(folder, 0755));
  ALCOVE_TRY_ASSIGN(const std::string lock, image::read_file(python.lock));
  ALCOVE_TRY(image::replace_file(folder + "/wheels.lock", lock, 0644));
  utsname system{};
  if (::uname(&system) != 0) return fail_errno(errno, "uname");
  FetchProgress fetch_progress(progress, count_wheels(lock));
  image::Program program;
  program.argv = {"setpriv",
                  "--pdeathsig",
                  "KILL",
                  "nice",
                  "python3",
                  "-m",
                  "pip",
                  "download",
                  "--require-hashes",
                  "--no-deps",
                  "--only-binary=:all:",
                  "--disable-pip-version-check",
                  "--progress-bar=off",
                  "--implementation=cp",
                  "--python-version=" + python.version,
                  "--abi=cp" + without_dot(python.version),
                  "--abi=abi3",
                  "--abi=none",
                  "--dest=" + folder,
                  "--requirement=" + folder + "/wheels.lock"};
  const auto platforms = platform_arguments(system.machine);
  program.argv.insert(program.argv.end(), platforms.begin(), platforms.end());
  program.inherited_fd = lock_fd;
  program.on_line = [&](std::string_view line) { fetch_progress.handle(line); };
  program.timeout = kFetchTimeout;
  program.canceled = canceled;
  auto fetched = image::run_program(program);
  if (!fetched) return fail(std::move(fetched).error().context("fetch Python packages"));
  return {};
}

std::vector<std::string> python_install_steps(const PythonPackages& python) {
  const std::string interpreter = "python" + python.version;
  return {
      // Everybody may change what pip installs, as in /usr/local of the base template. Debian's own
      // packages stay: pip cannot take them away, and /usr/local goes before them.
      cat("umask 0; nice ", interpreter,
          " -m pip install --no-index --no-deps --ignore-installed --no-compile "
          "--break-system-packages --no-cache-dir"
          " --disable-pip-version-check --root-user-action=ignore --quiet --find-links=",
          kWheels, " --require-hashes --requirement=", kWheels, "/wheels.lock"),
      // Compiled in advance: sandboxes would do it at each first import, as far as they may write.
      // Files that are no valid Python (templates, tests of parsers) are no failure.
      cat("umask 0; nice ", interpreter, " -m compileall -q -j 0 \"$(", interpreter,
          " -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')\" || true"),
  };
}

}  // namespace alcove::templates
