// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The binary codec. Expected bytes are written out: number and wire type, length, content.
#include <gtest/gtest.h>

#include "agent/filesystem_messages.h"
#include "agent/process_messages.h"
#include "base/hex.h"

namespace alcove::agent {
namespace {

constexpr auto kProto = connect::Codec::kProto;

std::string bytes(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

// Without the envelope's head, whose length must be right.
std::string payload_hex(const std::string& framed) {
  EXPECT_EQ(static_cast<size_t>(static_cast<uint8_t>(framed[4])), framed.size() - 5);
  return to_hex(framed.substr(5));
}

TEST(ProtoStart, ReadsEveryField) {
  // process{cmd "sh", args "-c" "x", envs {"A":"b"}, cwd "/"}, pty{size{cols 80, rows 24}}, tag
  // "t", stdin false, and a field 15 that nobody knows.
  const auto request = decode_start(kProto, bytes("0a16"
                                                  "0a027368"
                                                  "12022d63"
                                                  "120178"
                                                  "1a060a0141120162"
                                                  "22012f"
                                                  "1206"
                                                  "0a0408501018"
                                                  "1a0174"
                                                  "2000"
                                                  "7a0161"));
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->process.command, "sh");
  EXPECT_EQ(request->process.arguments, (std::vector<std::string>{"-c", "x"}));
  EXPECT_EQ(request->process.environment.at("A"), "b");
  EXPECT_EQ(request->process.directory, "/");
  EXPECT_EQ(request->terminal, (TerminalSize{80, 24}));
  EXPECT_EQ(request->tag, "t");
  EXPECT_EQ(request->input, SpawnSpec::Input::kNull);
}

TEST(ProtoStart, AbsentFieldsHaveTheirMeaning) {
  const auto request = decode_start(kProto, "");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->input, SpawnSpec::Input::kPipe);
  EXPECT_FALSE(request->terminal || request->tag || request->process.directory);
}

TEST(ProtoStart, FieldOfAnotherWireTypeIsUnknown) {
  // "tag" as a number.
  const auto request = decode_start(kProto, bytes("1807"));
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->tag);
}

TEST(ProtoStart, MalformedMessagesAreRefused) {
  for (const char* broken : {"0a", "0a05", "0a0201", "ff", "0a020a05", "20", "0800"}) {
    const auto request = decode_start(kProto, bytes(broken));
    if (std::string_view(broken) == "0800") {
      EXPECT_TRUE(request) << "another wire type is no error";
      continue;
    }
    ASSERT_FALSE(request) << broken;
    EXPECT_EQ(request.error().code(), Code::kInvalidArgument);
  }
  const auto text = decode_start(kProto, bytes("1a01ff"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(), "a string is not valid UTF-8");
}

TEST(ProtoSelector, ByPidOrTagOrNone) {
  EXPECT_EQ(std::get<ByPid>(*decode_selector(kProto, bytes("0a03089601"))).pid, 150u);
  EXPECT_EQ(std::get<ByTag>(*decode_selector(kProto, bytes("0a03120174"))).tag, "t");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*decode_selector(kProto, "")));
}

TEST(ProtoInput, KindsAndEmptyInput) {
  const auto request = decode_send_input(kProto, bytes("0a020801"
                                                       "1204"
                                                       "0a02fe00"));
  ASSERT_TRUE(request && request->input);
  EXPECT_EQ(request->input->data, std::string("\xfe\0", 2));
  EXPECT_EQ(decode_send_input(kProto, bytes("12021200"))->input->kind, InputKind::kTerminal);
  EXPECT_FALSE(decode_send_input(kProto, bytes("1200"))->input);
  const auto start = decode_stream_input(kProto, bytes("0a040a020801"));
  ASSERT_TRUE(start && start->start);
  EXPECT_EQ(std::get<ByPid>(*start->start).pid, 1u);
  const auto data = decode_stream_input(kProto, bytes("120512030a0178"));
  ASSERT_TRUE(data && data->has_data && data->input);
  EXPECT_EQ(data->input->data, "x");
  EXPECT_FALSE(decode_stream_input(kProto, bytes("1a00"))->has_data);
}

TEST(ProtoOthers, SignalUpdateAndPaths) {
  EXPECT_EQ(decode_send_signal(kProto, bytes("0a0208011009"))->signal, 9);
  EXPECT_EQ(decode_update(kProto, bytes("12060a0408641001"))->terminal, (TerminalSize{100, 1}));
  EXPECT_FALSE(decode_update(kProto, bytes("1200"))->terminal);
  EXPECT_EQ(decode_path(kProto, bytes("0a022f61")), "/a");
  EXPECT_EQ(decode_list_dir(kProto, bytes("0a012f1003"))->depth, 3u);
  EXPECT_EQ(decode_move(kProto, bytes("0a0161120162"))->destination, "b");
  const auto watch = decode_watch(kProto, bytes("0a012f100118012001"));
  ASSERT_TRUE(watch);
  EXPECT_TRUE(watch->options.recursive && watch->options.include_entry);
  EXPECT_TRUE(watch->options.allow_network_mounts);
}

TEST(ProtoEvents, AreWrittenAsTheSchemaSays) {
  std::string out;
  append_start_event(kProto, 150, out);
  EXPECT_EQ(payload_hex(out), "0a050a03089601");
  out.clear();
  append_output_event(kProto, OutputKind::kStderr, "hi", out);
  EXPECT_EQ(payload_hex(out), "0a06120412026869");
  out.clear();
  append_end_event(kProto, {.exit_code = -1, .exited = false, .status = "s", .error = "s"}, out);
  EXPECT_EQ(payload_hex(out), "0a0a1a0808011a0173220173");
  out.clear();
  append_keepalive_event(kProto, out);
  EXPECT_EQ(payload_hex(out), "0a022200");
  out.clear();
  append_watch_start(kProto, out);
  EXPECT_EQ(payload_hex(out), "0a00");
  out.clear();
  append_watch_event(kProto, {"f", EventType::kWrite, {}}, out);
  EXPECT_EQ(payload_hex(out), "12050a01661002");
}

TEST(ProtoEvents, LargeOutputHasRightLengths) {
  std::string out;
  const std::string data(20'000, 'x');
  append_output_event(kProto, OutputKind::kStdout, data, out);
  // Three heads of one byte for the number and three for the length.
  EXPECT_EQ(out.size(), 5 + 3 * 4 + data.size());
  EXPECT_EQ(to_hex(out.substr(5, 12)),
            "0aa89c01"
            "12a49c01"
            "0aa09c01");
}

TEST(ProtoEntry, NamesThatAreNotUtf8AreReplaced) {
  EntryInfo entry;
  entry.name = "a\xff";
  entry.path = "/";
  entry.modified.tv_nsec = 5;
  entry.metadata = {{"k", "v"}};
  EXPECT_EQ(to_hex(encode_entry(kProto, entry)),
            "0a1b"
            "0a0461efbfbd"
            "1a012f"
            "3200"
            "3a00"
            "4200"
            "4a021005"
            "5a060a016b120176");
}

TEST(ProtoList, HasConfigPidAndTag) {
  ProcessInfo info;
  info.config.command = "sh";
  info.pid = 7;
  info.tag = "";
  EXPECT_EQ(to_hex(encode_process_list(kProto, {info})), "0a0a0a040a02736810071a00");
}

}  // namespace
}  // namespace alcove::agent
