// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/clock_mark.h"

#include <ctime>
#include <string>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::node {
namespace {

constexpr const char* kSetting = "clock.mark";

WallTime::duration since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<WallTime::duration>(std::chrono::seconds(now.tv_sec) +
                                                        std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

Result<WallTime::duration> note_clock(store::Store& store, const Clock& clock) {
  ALCOVE_TRY_ASSIGN(const std::string boot_file, sys::read_file("/proc/sys/kernel/random/boot_id"));
  const std::string boot(trim(boot_file));
  const WallTime::duration offset = clock.now().time_since_epoch() - since_boot();
  ALCOVE_TRY_ASSIGN(const auto known, store.find_setting(kSetting));
  WallTime::duration step{};
  if (known && known->starts_with(boot + ' ')) {
    const auto before = parse_number<int64_t>(std::string_view(*known).substr(boot.size() + 1));
    if (before) step = offset - WallTime::duration(*before);
    // The note is right.
    if (before && std::chrono::abs(step) < kSmallestClockStep) return WallTime::duration{};
  }
  ALCOVE_TRY(store.put_setting(kSetting, cat(boot, ' ', offset.count())));
  return step;
}

}  // namespace alcove::node
