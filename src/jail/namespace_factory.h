// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <span>

#include "base/result.h"
#include "base/unique_fd.h"
#include "network/guest_network.h"
#include "network/id_range.h"

namespace alcove::jail {

// The launcher's side of network::NamespaceMaker; needs a single-threaded process and the host's
// /proc.

// A user namespace that maps the whole block.
Result<UniqueFd> make_template_namespace(uint32_t block);

// Moves this process into the template's namespace for good, as its root: only from there can the
// maps of its children be written.
Result<void> enter_template_namespace(int template_ns);

// User namespace and network namespace of a new pair, to be called after
// enter_template_namespace(). The network has `lo` only, which leads everywhere, and the first of
// the rule sets that the kernel takes.
struct NewPair {
  UniqueFd user_ns;
  UniqueFd net_ns;
  size_t rule_set = 0;  // the index of the one that was loaded
};
Result<NewPair> make_namespace_pair(uint32_t range_index,
                                    std::span<const network::RuleSet> rule_sets);

}  // namespace alcove::jail
