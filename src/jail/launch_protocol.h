// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "network/guest_network.h"
#include "network/id_range.h"

namespace alcove::jail {

// What the driver asks of the launcher: one message each on a SOCK_SEQPACKET pair. The first
// descriptor of every request is the socket for its answer; closing it ends the answer. Both ends
// are of the same build and trust each other; the decoder still accepts any bytes.

// Answer: the user namespace.
struct TemplateNamespaceRequest {
  uint32_t block = 0;
};

// Descriptors: answer, template's user namespace. Answer: user and network namespace per range.
struct PairsRequest {
  std::vector<network::IdRange> ranges;
  std::vector<network::RuleSet> rule_sets;  // best first; the kernel's first choice is used
};
inline constexpr size_t kMaxPairsPerRequest = 16;
inline constexpr size_t kMaxRuleSets = 8;

// Descriptors: answer, user namespace, network namespace, [cgroup2 directory,] v1 `tasks` files.
// Answer: ProcessStarted with its pidfd, then the end (the agent runs) or StepFailed. Paths are
// those of the launcher's own root.
struct BootRequest {
  network::IdRange range;
  std::string hostname;
  std::vector<std::string> layers;  // topmost first
  std::string upper_dir;
  std::string work_dir;
  std::string agent_path;
  std::vector<std::string> agent_args;
  std::string ca_bundle;         // empty: none
  std::string interpreter_path;  // empty: none
  uint16_t agent_port = 0;
  uint32_t cpus = 1;
  uint64_t memory_bytes = 0;
  std::string cgroup;  // "<prefix>/<name>" in each hierarchy
  bool has_cgroup2 = false;
};

using Request = std::variant<TemplateNamespaceRequest, PairsRequest, BootRequest>;

std::string encode(const Request& request);
Result<Request> decode_request(std::string_view bytes);

// The launcher is ready for requests (sent once, unasked), or has done what was asked.
struct Done {
  uint64_t rule_set = 0;  // of PairsRequest: the index of the one that was loaded
};
struct ProcessStarted {
  pid_t pid = 0;
};
// A named step of the work did not succeed.
struct StepFailed {
  std::string step;
  std::string detail;  // what it worked on; may be empty
  int error_number = 0;
};

using Answer = std::variant<Done, ProcessStarted, StepFailed>;

std::string encode(const Answer& answer);
Result<Answer> decode_answer(std::string_view bytes);

Error to_error(const StepFailed& failure);

}  // namespace alcove::jail
