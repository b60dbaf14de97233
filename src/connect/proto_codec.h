// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/result.h"
#include "base/strings.h"

namespace alcove::connect {

// Binary messages (protocol/envd.md 1.1).

// What `ProtoReader::key()` is for a field of that number and kind. A field that comes with another
// wire type than its own counts as unknown, as protobuf has it.
constexpr uint32_t varint_field(uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}
// Strings, bytes and messages.
constexpr uint32_t length_field(uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}

// The fields of one message, one after the other:
//   while (reader.next()) switch (reader.key()) { case length_field(1): ...; default: skip(); }
// Each field is read or skipped. Malformed input throws protozero's exceptions, which read_proto()
// catches.
class ProtoReader {
 public:
  ProtoReader(protozero::pbf_reader reader, bool& text_is_valid)
      : reader_(reader), text_is_valid_(text_is_valid) {}

  bool next() { return reader_.next(); }
  uint32_t key() const { return reader_.tag_and_type(); }
  void skip() { reader_.skip(); }

  std::string bytes() { return reader_.get_string(); }
  std::string text() {
    std::string value = reader_.get_string();
    if (!is_valid_utf8(value)) text_is_valid_ = false;
    return value;
  }
  uint32_t number() { return reader_.get_uint32(); }
  // Not get_bool(), which reads the first byte before it checks that there is one.
  bool boolean() { return reader_.get_uint64() != 0; }
  ProtoReader message() { return {reader_.get_message(), text_is_valid_}; }
  // An entry of map<string, string>.
  std::pair<std::string, std::string> map_entry() {
    std::pair<std::string, std::string> entry;
    ProtoReader fields = message();
    while (fields.next()) {
      switch (fields.key()) {
        case length_field(1):
          entry.first = fields.text();
          break;
        case length_field(2):
          entry.second = fields.text();
          break;
        default:
          fields.skip();
      }
    }
    return entry;
  }

 private:
  protozero::pbf_reader reader_;
  bool& text_is_valid_;
};

// Returns what `decode(ProtoReader)` makes of the message; kInvalidArgument if it is malformed or
// has text that is not UTF-8.
template <typename Decode>
auto read_proto(std::string_view message, Decode decode)
    -> Result<decltype(decode(std::declval<ProtoReader>()))> {
  try {
    bool text_is_valid = true;
    auto value =
        decode(ProtoReader(protozero::pbf_reader(message.data(), message.size()), text_is_valid));
    if (!text_is_valid) return fail(Code::kInvalidArgument, "a string is not valid UTF-8");
    return value;
  } catch (const protozero::exception& failure) {
    return fail(Code::kInvalidArgument, cat("malformed message: ", failure.what()));
  }
}

// A field of type string; what is not UTF-8 in it (a file's name may be anything) is replaced.
inline void add_text(protozero::pbf_writer& writer, uint32_t number, std::string_view text) {
  if (is_valid_utf8(text)) {
    writer.add_string(number, text.data(), text.size());
  } else {
    writer.add_string(number, to_valid_utf8(text));
  }
}

inline void add_map(protozero::pbf_writer& writer, uint32_t number,
                    const std::map<std::string, std::string>& map) {
  for (const auto& [name, value] : map) {
    protozero::pbf_writer entry(writer, number);
    add_text(entry, 1, name);
    add_text(entry, 2, value);
  }
}

}  // namespace alcove::connect
