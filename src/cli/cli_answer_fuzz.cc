// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Answers of a hostile sandbox: events of a command, entries of a directory, errors; and what is
// shown of them.
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cli/copy_path.h"
#include "cli/exec_messages.h"
#include "cli/printable.h"
#include "cli/remote_files.h"
#include "connect/client.h"
#include "connect/json_codec.h"

namespace {

void check_shown(std::string_view text) {
  const std::string shown = alcove::cli::printable(text);
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    ALCOVE_ASSERT(byte >= 0x20 && byte != 0x7f);
  }
  // What is printable stays as it is.
  ALCOVE_ASSERT(alcove::cli::printable(shown) == shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_shown(text);
  check_shown(alcove::connect::parse_error(text).message());
  const auto event = alcove::cli::parse_event(text);
  if (event) {
    if (const auto* ended = std::get_if<alcove::cli::Ended>(&*event)) {
      ALCOVE_ASSERT(ended->exit_code >= 0 && ended->exit_code <= 255);
    }
  }
  if (const auto object = alcove::connect::parse_message(text)) {
    const auto entry = alcove::cli::parse_entry(*object);
    if (entry) {
      ALCOVE_ASSERT(entry->mode <= 0777);
      if (alcove::cli::is_safe_name(entry->name)) {
        ALCOVE_ASSERT(entry->name.find('/') == std::string::npos);
      }
    }
  }
  return 0;
}
