// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// alcove-jail <data dir> [<extra dir>...]: fd 3 is the driver's socket.
#include <linux/close_range.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "jail/launch_protocol.h"
#include "jail/launcher.h"
#include "sys/message.h"

namespace {
constexpr int kDriverSocket = 3;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ::close_range(kDriverSocket + 1, ~0U, 0);
  const std::string data_dir = argv[1];
  const std::vector<std::string> extra_dirs(argv + 2, argv + argc);
  alcove::jail::Launcher launcher(kDriverSocket);
  if (const auto ready = launcher.prepare(data_dir, extra_dirs); !ready) {
    const alcove::jail::StepFailed failure{"start the launcher", ready.error().message(),
                                           ready.error().error_number()};
    (void)alcove::sys::send_message(kDriverSocket, encode(alcove::jail::Answer(failure)), {});
    return 1;
  }
  launcher.serve();
  return 0;
}
