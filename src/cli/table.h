// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <vector>

namespace alcove::cli {

// Rows for people, columns aligned. Every cell is made printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The header and all rows, each ended by a newline.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace alcove::cli
