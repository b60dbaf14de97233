// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace alcove::cli {

// One line on the terminal (standard error) that says how far a long transfer is. Shows nothing if
// it is no terminal, or while the transfer is young.
class Progress {
 public:
  Progress();
  // Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The file under way; total 0: not known.
  void begin_file(std::string_view name, uint64_t total);
  void add(uint64_t bytes);

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void show();

  const bool visible_;
  const std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point shown_{};
  std::string name_;
  uint64_t file_total_ = 0;
  uint64_t file_done_ = 0;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace alcove::cli
