// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace alcove {
namespace {

TEST(PlainJsonPrefix, StopsAtEveryByteThatIsNotPlainWhereverItStands) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool plain = byte >= 0x20 && byte <= 0x7E && byte != '"' && byte != '\\';
    for (size_t at = 0; at < 40; ++at) {
      std::string text(40, 'a');
      text[at] = static_cast<char>(byte);
      ASSERT_EQ(plain_json_prefix(text), plain ? text.size() : at) << byte << " at " << at;
    }
  }
}

TEST(PlainJsonPrefix, TakesTextsOfAnyLengthWhole) {
  // Each in memory of its own, so that a sanitizer sees a read behind the end.
  for (size_t size = 0; size < 70; ++size) {
    ASSERT_EQ(plain_json_prefix(std::string(size, '~')), size);
  }
}

TEST(PlainJsonPrefix, FindsTheFirstOfSeveral) {
  EXPECT_EQ(plain_json_prefix("abc\"def\\ghijklmnopqrstuvwxyz\n"), 3u);
}

}  // namespace
}  // namespace alcove
