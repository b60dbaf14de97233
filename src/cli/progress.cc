// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/strings.h"
#include "cli/printable.h"
#include "cli/units.h"

namespace alcove::cli {
namespace {

constexpr std::chrono::milliseconds kQuietAtFirst{500};
constexpr std::chrono::milliseconds kInterval{100};
// Back to the line's start, and away with what is there.
constexpr const char* kClearLine = "\r\x1b[K";

// The end of a name that would not fit on the line.
std::string shortened(std::string_view name) {
  constexpr size_t kMost = 40;
  std::string shown = printable(name);
  if (shown.size() <= kMost) return shown;
  size_t cut = shown.size() - kMost;
  while (cut < shown.size() && (shown[cut] & 0xc0) == 0x80) ++cut;
  return cat("...", std::string_view(shown).substr(cut));
}

}  // namespace

Progress::Progress()
    : visible_(::isatty(STDERR_FILENO) != 0), begun_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_ != decltype(shown_){}) std::fputs(kClearLine, stderr);
}

void Progress::begin_file(std::string_view name, uint64_t total) {
  name_ = name;
  file_total_ = total;
  file_done_ = 0;
  ++files_;
  show();
}

void Progress::add(uint64_t bytes) {
  file_done_ += bytes;
  bytes_ += bytes;
  show();
}

void Progress::show() {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - begun_ < kQuietAtFirst || now - shown_ < kInterval) return;
  shown_ = now;
  std::string line = cat(shortened(name_), "  ", format_bytes(file_done_));
  if (file_total_ > 0) {
    line += cat(" of ", format_bytes(file_total_), ", ", file_done_ * 100 / file_total_, " %");
  }
  if (files_ > 1) line += cat("  (file ", files_, ")");
  std::fprintf(stderr, "%s%s", kClearLine, line.c_str());
}

}  // namespace alcove::cli
