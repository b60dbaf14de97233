// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// JSON messages, strings and base64 of arbitrary bytes.

#include <cstdint>

#include <boost/json/object.hpp>

#include "base/assert.h"
#include "base/strings.h"
#include "connect/gzip.h"
#include "connect/json_codec.h"

namespace alcove::connect {
namespace {

void check_reading(std::string_view input) {
  const auto message = parse_message(input);
  if (!message) return;
  constexpr EnumName kNames[] = {{"ONE", 1}};
  for (const auto& member : *message) {
    const std::string name(member.key().data(), member.key().size());
    (void)read_string(*message, name);
    (void)read_bool(*message, name);
    (void)read_int32(*message, name);
    (void)read_uint32(*message, name);
    (void)read_int64(*message, name);
    (void)read_uint64(*message, name);
    (void)read_bytes(*message, name);
    (void)read_enum(*message, name, kNames);
    (void)read_strings(*message, name);
    (void)read_string_map(*message, name);
  }
}

void check_writing(std::string_view input) {
  std::string text = "{\"a\":";
  append_json_string(text, input);
  text += '}';
  ALCOVE_ASSERT(is_valid_utf8(text));
  const auto message = parse_message(text);
  ALCOVE_ASSERT(message.has_value());
  if (is_valid_utf8(input)) ALCOVE_ASSERT(read_string(*message, "a").value() == input);
}

}  // namespace
}  // namespace alcove::connect

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  connect::check_reading(input);
  connect::check_writing(input);
  ALCOVE_ASSERT(from_base64(to_base64(input)) == input);
  (void)from_base64(input);
  const auto unpacked = connect::gunzip(input, /*limit=*/100'000);
  ALCOVE_ASSERT(!unpacked || unpacked->size() <= 100'000);
  return 0;
}
