// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/mountinfo.h"

namespace alcove {

std::string unescape_mountinfo(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace alcove
