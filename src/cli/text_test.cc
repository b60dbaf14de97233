// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>

#include "base/time_format.h"
#include "cli/copy_path.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/units.h"

namespace alcove::cli {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  for (const char* text : {"", "plain", "Grüße 世界 🎉", "back\\slash", "a=1 b=2"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsWhatCouldActOnATerminal) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("a\nb\tc\rd\x07"), "a\\x0ab\\x09c\\x0dd\\x07");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  // CSI as one character of UTF-8.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
}

TEST(Printable, ShowsMarksThatTurnTheDirection) {
  EXPECT_EQ(printable("txt\xe2\x80\xae"
                      "exe"),
            "txt\\u202eexe");
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\u2066");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  // An overlong escape character.
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");
}

TEST(Table, AlignsColumnsByCharacters) {
  Table table({"NAME", "VALUE"});
  table.add({"ü", "1"});
  table.add({"longer", ""});
  EXPECT_EQ(table.text(), "NAME    VALUE\nü       1\nlonger  -\n");
}

TEST(Table, CellsCannotBreakIt) {
  Table table({"A", "B"});
  table.add({"x\ny", "\x1b[2J"});
  EXPECT_EQ(table.text(), "A       B\nx\\x0ay  \\x1b[2J\n");
}

TEST(Units, BytesAreShort) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(10ull << 30), "10 GiB");
  EXPECT_EQ(format_bytes(~0ull), "16 EiB");
}

TEST(Units, DurationsHaveTwoUnits) {
  using std::chrono::seconds;
  EXPECT_EQ(format_duration(seconds(59)), "59s");
  EXPECT_EQ(format_duration(seconds(61)), "1m1s");
  EXPECT_EQ(format_duration(seconds(3599)), "59m");
  EXPECT_EQ(format_duration(seconds(3 * 3600 + 12 * 60 + 7)), "3h12m");
  EXPECT_EQ(format_duration(seconds(52 * 3600)), "2d4h");
}

TEST(Units, TimesAreShownByTheirDistance) {
  const WallTime now = *parse_rfc3339("2026-11-18T08:00:00Z");
  EXPECT_EQ(format_when("2026-11-18T07:59:30Z", now), "30s ago");
  EXPECT_EQ(format_when("2026-11-18T10:00:00Z", now), "in 2h");
  EXPECT_EQ(format_when("nonsense", now), "nonsense");
}

TEST(Units, DurationsAreRead) {
  EXPECT_EQ(parse_duration("300")->count(), 300);
  EXPECT_EQ(parse_duration("90s")->count(), 90);
  EXPECT_EQ(parse_duration("5m")->count(), 300);
  EXPECT_EQ(parse_duration("2h")->count(), 7200);
  EXPECT_EQ(parse_duration("1d")->count(), 86400);
  for (const char* text : {"", "m", "-1", "1w", "1.5h", "5 m", "99999999999"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(CopyPath, TellsSandboxesFromFiles) {
  EXPECT_EQ(parse_copy_path("i0a:/x").sandbox_id, "i0a");
  EXPECT_EQ(parse_copy_path("i0a:/x").path, "/x");
  EXPECT_EQ(parse_copy_path("i0a-6532622b:").sandbox_id, "i0a-6532622b");
  EXPECT_EQ(parse_copy_path("i0a:a:b").path, "a:b");
  for (const char* text : {"file", "./a:b", "/tmp/a:b", ":x", "Name:x", "a.b:c"}) {
    EXPECT_FALSE(parse_copy_path(text).is_remote()) << text;
    EXPECT_EQ(parse_copy_path(text).path, text);
  }
}

TEST(CopyPath, BaseNames) {
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("b///"), "b");
  for (const char* text : {"", "/", ".", "..", "a/..", "./"})
    EXPECT_EQ(base_name(text), "") << text;
  EXPECT_EQ(join_path("/a/", "b"), "/a/b");
  EXPECT_EQ(join_path("a", "b"), "a/b");
}

TEST(CopyPath, NamesThatLeaveTheirDirectoryAreNotSafe) {
  for (const std::string_view name :
       {std::string_view(""), std::string_view("."), std::string_view(".."),
        std::string_view("../x"), std::string_view("/etc"), std::string_view("a/b"),
        std::string_view("a\0b", 3)}) {
    EXPECT_FALSE(is_safe_name(name)) << name;
  }
  for (const char* name : {"a", "...", "..a", " ", "-rf", "\x1b[2J"}) {
    EXPECT_TRUE(is_safe_name(name)) << name;
  }
}

}  // namespace
}  // namespace alcove::cli
