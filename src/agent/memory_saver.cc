// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/memory_saver.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace alcove::agent {
namespace {

// Pages of the program file are mapped in groups around each one that is used (the kernel's
// fault-around), so nearly all of a small program counts as resident after its start. Unmapped,
// they stay in the page cache, which all agents share, and come back when they are used.
int release_segments(dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
  const auto page = static_cast<ElfW(Addr)>(::sysconf(_SC_PAGESIZE));
  for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    // Never a writable one: its changes would be lost.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const ElfW(Addr) begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const ElfW(Addr) end = (info->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 1;  // the program itself comes first; that is all
}

}  // namespace

void give_memory_back() {
  ::malloc_trim(/*pad=*/0);
  ::dl_iterate_phdr(release_segments, nullptr);
}

MemorySaver::MemorySaver(const boost::asio::any_io_executor& executor,
                         std::chrono::steady_clock::duration quiet_time)
    : timer_(executor), quiet_time_(quiet_time) {
  touch();
}

void MemorySaver::touch() {
  last_touch_ = std::chrono::steady_clock::now();
  if (!armed_) arm();
}

void MemorySaver::arm() {
  armed_ = true;
  timer_.expires_at(last_touch_ + quiet_time_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    armed_ = false;
    if (std::chrono::steady_clock::now() < last_touch_ + quiet_time_) {
      arm();
    } else {
      give_memory_back();
    }
  });
}

}  // namespace alcove::agent
