// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a Jupyter kernel says of a run, and the kernel.json that names it. Each line of the input is
// one message: its type, a blank, and its content.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/parse.hpp>

#include "base/assert.h"
#include "base/strings.h"
#include "interpreter/jupyter_kernel_spec.h"
#include "interpreter/jupyter_run.h"
#include "interpreter/result_fields.h"

namespace {

using namespace alcove::interpreter;

void check_line(const RunEvent& event) {
  const std::string line = event_line(event, "t");
  ALCOVE_ASSERT(line.ends_with('\n'));
  for (const char c : std::string_view(line).substr(0, line.size() - 1)) {
    ALCOVE_ASSERT(c >= 0x20 && c <= 0x7E);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const JupyterRun::TimePoint now{};
  JupyterRun run("id", JupyterRun::Kind::kUser, /*next_count=*/1);
  for (const std::string_view line : alcove::split(text, '\n')) {
    const size_t blank = std::min(line.find(' '), line.size());
    boost::system::error_code error;
    boost::json::value content = boost::json::parse(line.substr(blank), error);
    if (error || !content.is_object()) continue;
    JupyterMessage message;
    message.type = line.substr(0, blank);
    message.content = std::move(content.get_object());
    if (message.type == "execute_reply") {
      run.take_reply(message, now);
    } else {
      run.take_published(message, now);
    }
  }
  if (run.finished(now)) run.conclude();
  for (bool first = true; run.has_event(); first = false) {
    const RunEvent event = run.next_event();
    ALCOVE_ASSERT(std::holds_alternative<RunStarted>(event) == first);
    check_line(event);
  }
  ALCOVE_ASSERT(run.waiting_bytes() == 0);

  const auto spec = parse_jupyter_kernel_spec(text, "name", "/dir");
  if (spec) ALCOVE_ASSERT(!jupyter_kernel_command(*spec, "/file").empty());
  return 0;
}
