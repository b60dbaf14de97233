// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The messages of both services, of /init and of /journal, and the sandbox's own account files.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/filesystem_messages.h"
#include "agent/init_message.h"
#include "agent/journal_message.h"
#include "agent/process_messages.h"
#include "agent/users.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto codec : {alcove::connect::Codec::kJson, alcove::connect::Codec::kProto}) {
    if (const auto request = decode_start(codec, text)) {
      // What List shows can be started again.
      const ProcessInfo info{request->process, 1, request->tag};
      (void)encode_process_list(codec, {info});
    }
    (void)decode_selector(codec, text);
    (void)decode_send_input(codec, text);
    (void)decode_stream_input(codec, text);
    (void)decode_send_signal(codec, text);
    (void)decode_update(codec, text);
    (void)decode_path(codec, text);
    (void)decode_list_dir(codec, text);
    (void)decode_move(codec, text);
    (void)decode_watch(codec, text);
    (void)decode_watcher_id(codec, text);
  }
  if (const auto init = decode_init(text)) {
    const auto again = decode_init(encode_init(*init));
    ALCOVE_ASSERT(again && again->access_token == init->access_token);
  }
  if (const auto lines = decode_journal(text)) {
    const auto body = encode_journal({lines->begin(), lines->end()});
    ALCOVE_ASSERT(lines->size() <= kMaxJournalLines && body.size() <= kMaxJournalBody);
    const auto again = decode_journal(body);
    ALCOVE_ASSERT(again && again->size() == lines->size());
  }
  const Accounts accounts(text, text);
  ALCOVE_ASSERT(accounts.find("root"));
  (void)accounts.user_name(1000);
  return 0;
}
