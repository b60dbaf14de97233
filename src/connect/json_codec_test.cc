// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/json_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace alcove::connect {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

boost::json::object parse(std::string_view text) { return parse_message(text).value(); }

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(json_of(""), R"("")");
  EXPECT_EQ(json_of("plain text, longer than a word"), R"("plain text, longer than a word")");
  EXPECT_EQ(json_of("a\"b\\c\n\r\t\x01\x1f"), R"("a\"b\\c\n\r\t\u0001\u001f")");
  EXPECT_EQ(json_of(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(json_of("\x7f"), "\"\x7f\"");
}

TEST(JsonWriter, EveryByteAtEveryPlaceIsReadBack) {
  for (int byte = 0; byte < 128; ++byte) {
    for (size_t place = 0; place < 17; ++place) {
      std::string text(17, 'x');
      text[place] = static_cast<char>(byte);
      const auto message = parse("{\"a\":" + json_of(text) + "}");
      EXPECT_EQ(read_string(message, "a").value(), text) << byte << " at " << place;
    }
  }
}

TEST(JsonWriter, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(json_of("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(json_of("a\xff"), "\"a" + mark + "\"");
  EXPECT_EQ(json_of("\xc3"), "\"" + mark + "\"");
  EXPECT_EQ(json_of("\xc0\x80"), "\"" + mark + mark + "\"");
  EXPECT_EQ(json_of("\xed\xa0\x80"), "\"" + mark + mark + mark + "\"");
  EXPECT_EQ(json_of("\xf4\x90\x80\x80z"), "\"" + mark + mark + mark + mark + "z\"");
  EXPECT_EQ(json_of("\xe2\x82"), "\"" + mark + mark + "\"");
}

TEST(JsonWriter, AppendsOtherValues) {
  std::string out;
  append_json_bytes(out, "\xff\xfe");
  append_json_number(out, -5);
  append_json_bool(out, true);
  EXPECT_EQ(out, "\"//4=\"-5true");
}

TEST(ParseMessage, TakesObjectsOnly) {
  EXPECT_TRUE(parse_message("{}"));
  EXPECT_TRUE(parse_message(" {\n\"a\" : 1 } "));
  for (const std::string_view text :
       {"", "[]", "1", "null", "{", "{}x", "{\"a\":}", "{'a':1}", "{\"a\":\"\xff\"}"}) {
    const auto message = parse_message(text);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(parse_message("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"));
}

TEST(FindField, KnowsBothSpellings) {
  EXPECT_NE(find_field(parse(R"({"envVars":1})"), "envVars"), nullptr);
  EXPECT_NE(find_field(parse(R"({"env_vars":1})"), "envVars"), nullptr);
  EXPECT_EQ(find_field(parse(R"({"envvars":1})"), "envVars"), nullptr);
  EXPECT_EQ(find_field(parse(R"({"env_Vars":1})"), "envVars"), nullptr);
  EXPECT_EQ(find_field(parse(R"({"env_vars_":1})"), "envVars"), nullptr);
  EXPECT_EQ(find_field(parse(R"({"env":1})"), "envVars"), nullptr);
  EXPECT_EQ(find_field(parse(R"({"envVars":null})"), "envVars"), nullptr);
}

TEST(ReadScalars, AbsentAndNullAreZero) {
  const auto message = parse(R"({"s":null})");
  EXPECT_EQ(read_string(message, "s").value(), "");
  EXPECT_EQ(read_bool(message, "b").value(), false);
  EXPECT_EQ(read_int64(message, "i").value(), 0);
  EXPECT_EQ(read_bytes(message, "y").value(), "");
  EXPECT_EQ(read_enum(message, "e", {}).value(), 0);
  EXPECT_TRUE(read_strings(message, "l").value().empty());
  EXPECT_TRUE(read_string_map(message, "m").value().empty());
  EXPECT_EQ(read_object(message, "o").value(), nullptr);
}

TEST(ReadScalars, IntegersInAllTheirForms) {
  const auto message = parse(
      R"({"a":5,"b":"5","c":5.0,"d":5e0,"e":-5,"f":"-5","g":18446744073709551615,"h":"18446744073709551615"})");
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(read_uint32(message, name).value(), 5u);
  for (const char* name : {"e", "f"}) {
    EXPECT_EQ(read_int32(message, name).value(), -5);
    EXPECT_FALSE(read_uint32(message, name));
  }
  for (const char* name : {"g", "h"}) {
    EXPECT_EQ(read_uint64(message, name).value(), UINT64_MAX);
    EXPECT_FALSE(read_int64(message, name));
    EXPECT_FALSE(read_int32(message, name));
  }
}

TEST(ReadScalars, WrongTypesNameTheField) {
  const auto message =
      parse(R"({"a":5.5,"b":"x","c":true,"d":[],"e":1e300,"f":"","g":"@@","h":[1],"i":{"k":1}})");
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    const auto number = read_int64(message, name);
    ASSERT_FALSE(number) << name;
    EXPECT_EQ(number.error().message(),
              std::string("field ") + name + " must be an integer in range");
  }
  EXPECT_FALSE(read_string(message, "a"));
  EXPECT_FALSE(read_bool(message, "a"));
  EXPECT_FALSE(read_bytes(message, "g"));
  EXPECT_FALSE(read_bytes(message, "a"));
  EXPECT_FALSE(read_strings(message, "h"));
  EXPECT_FALSE(read_string_map(message, "i"));
  EXPECT_FALSE(read_object(message, "a"));
  EXPECT_FALSE(read_array(message, "a"));
}

TEST(ReadScalars, EnumsByNameOrNumber) {
  constexpr EnumName kNames[] = {{"SIGNAL_SIGTERM", 15}, {"SIGNAL_SIGKILL", 9}};
  const auto message = parse(R"({"a":"SIGNAL_SIGKILL","b":15,"c":77,"d":"OTHER","e":true})");
  EXPECT_EQ(read_enum(message, "a", kNames).value(), 9);
  EXPECT_EQ(read_enum(message, "b", kNames).value(), 15);
  EXPECT_EQ(read_enum(message, "c", kNames).value(), 77);
  EXPECT_FALSE(read_enum(message, "d", kNames));
  EXPECT_FALSE(read_enum(message, "e", kNames));
}

TEST(ReadCollections, ListsMapsAndNestedMessages) {
  const auto message = parse(R"({"l":["a","b"],"m":{"x":"1","y":"2"},"o":{"n":"v"},"y":"_w"})");
  EXPECT_THAT(read_strings(message, "l").value(), ElementsAre("a", "b"));
  EXPECT_THAT(read_string_map(message, "m").value(), ElementsAre(Pair("x", "1"), Pair("y", "2")));
  EXPECT_EQ(read_string(*read_object(message, "o").value(), "n").value(), "v");
  EXPECT_EQ(read_bytes(message, "y").value(), "\xff");
}

}  // namespace
}  // namespace alcove::connect
