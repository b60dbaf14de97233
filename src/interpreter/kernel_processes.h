// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

namespace alcove::interpreter {

// Makes a kernel that was just started give way to the interpreter and the agent: in memory, in
// turns of the processor, and in the number of processes.
void make_kernel_give_way(pid_t pid);

// Whether what the kernel started can only be a fork bomb.
bool is_fork_bomb(pid_t kernel);

// Kills a kernel with all of its session; of a fork bomb, all descendants.
void kill_kernel(pid_t kernel);

}  // namespace alcove::interpreter
