// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/mountinfo.h"

#include <gtest/gtest.h>

namespace alcove {
namespace {

TEST(Mountinfo, OctalEscapesAreTheirCharacters) {
  EXPECT_EQ(unescape_mountinfo("/plain"), "/plain");
  EXPECT_EQ(unescape_mountinfo(R"(/a\040b\011c\012d\134e)"), "/a b\tc\nd\\e");
  EXPECT_EQ(unescape_mountinfo(R"(/cut\04)"), R"(/cut\04)");
}

}  // namespace
}  // namespace alcove
