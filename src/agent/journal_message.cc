// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/journal_message.h"

#include <utility>

#include <boost/json/array.hpp>

#include "connect/json_codec.h"
#include "connect/json_writer.h"

namespace alcove::agent {
namespace {

namespace json = boost::json;

// Not within a character: what comes out is UTF-8 as it was.
void cut_command(std::string& command) {
  if (command.size() <= kMaxJournalCommand) return;
  size_t end = kMaxJournalCommand;
  while (end > 0 && (static_cast<unsigned char>(command[end]) & 0xC0) == 0x80) --end;
  command.resize(end);
}

Result<JournalLine> decode_line(const json::value& value) {
  if (!value.is_object()) return fail(Code::kInvalidArgument, "a journal's lines are objects");
  const json::object& object = value.get_object();
  JournalLine line;
  ALCOVE_TRY_ASSIGN(const int64_t time, connect::read_int64(object, "time"));
  line.time = WallTime(WallTime::duration(time));
  ALCOVE_TRY_ASSIGN(line.pid, connect::read_uint32(object, "pid"));
  if (connect::find_field(object, "status") != nullptr) {
    ALCOVE_TRY_ASSIGN(line.wait_status, connect::read_int32(object, "status"));
    return line;
  }
  ALCOVE_TRY_ASSIGN(line.command, connect::read_string(object, "command"));
  cut_command(line.command);
  return line;
}

}  // namespace

std::string encode_journal(const std::deque<JournalLine>& lines) {
  std::string out = "{\"lines\":[";
  for (const JournalLine& line : lines) {
    if (out.back() != '[') out += ',';
    out += "{\"time\":";
    connect::append_json_number(out, line.time.time_since_epoch().count());
    out += ",\"pid\":";
    connect::append_json_number(out, line.pid);
    if (line.wait_status) {
      out += ",\"status\":";
      connect::append_json_number(out, *line.wait_status);
    } else {
      out += ",\"command\":";
      connect::append_json_string(out, line.command);
    }
    out += '}';
  }
  out += "]}";
  return out;
}

Result<std::vector<JournalLine>> decode_journal(std::string_view body) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(body));
  ALCOVE_TRY_ASSIGN(const json::array* values, connect::read_array(object, "lines"));
  std::vector<JournalLine> lines;
  if (values == nullptr) return lines;
  const size_t excess = values->size() > kMaxJournalLines ? values->size() - kMaxJournalLines : 0;
  lines.reserve(values->size() - excess);
  for (size_t i = excess; i < values->size(); ++i) {
    ALCOVE_TRY_ASSIGN(JournalLine line, decode_line((*values)[i]));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace alcove::agent
