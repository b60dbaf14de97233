// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/table.h"

#include <algorithm>

#include "cli/printable.h"

namespace alcove::cli {

std::string Table::text() const {
  std::vector<size_t> widths;
  std::vector<std::vector<std::string>> shown;
  for (const auto& row : rows_) {
    auto& cells = shown.emplace_back();
    for (const std::string& cell : row) {
      cells.push_back(cell.empty() ? "-" : printable(cell));
      if (widths.size() < cells.size()) widths.push_back(0);
      size_t& width = widths[cells.size() - 1];
      width = std::max(width, display_width(cells.back()));
    }
  }
  std::string out;
  for (const auto& cells : shown) {
    for (size_t i = 0; i < cells.size(); ++i) {
      out += cells[i];
      // Nothing behind the last cell: lines with trailing blanks wrap in narrow terminals.
      if (i + 1 < cells.size()) out.append(widths[i] - display_width(cells[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace alcove::cli
