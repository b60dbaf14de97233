// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>

#include "agent/filesystem_messages.h"
#include "agent/init_message.h"
#include "agent/process_messages.h"

namespace alcove::agent {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr auto kJson = connect::Codec::kJson;

// The payload of the only envelope.
std::string payload(const std::string& framed) {
  EXPECT_GE(framed.size(), 5u);
  uint32_t size = 0;
  for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(framed[i]);
  EXPECT_EQ(framed[0], 0);
  EXPECT_EQ(size, framed.size() - 5);
  return framed.substr(5);
}

TEST(StartMessage, ReadsEveryField) {
  const auto request = decode_start(
      kJson,
      R"({"process":{"cmd":"/bin/bash","args":["-l","-c","echo"],"envs":{"A":"b"},"cwd":"/tmp"},
          "pty":{"size":{"cols":80,"rows":"24"}},"tag":"t","stdin":false,"unknown":1})");
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->process.command, "/bin/bash");
  EXPECT_EQ(request->process.arguments, (std::vector<std::string>{"-l", "-c", "echo"}));
  EXPECT_EQ(request->process.environment.at("A"), "b");
  EXPECT_EQ(request->process.directory, "/tmp");
  EXPECT_EQ(request->terminal, (TerminalSize{80, 24}));
  EXPECT_EQ(request->tag, "t");
  EXPECT_EQ(request->input, SpawnSpec::Input::kNull);
}

TEST(StartMessage, AbsentStdinMeansAPipe) {
  const auto request = decode_start(kJson, R"({"process":{"cmd":"cat"},"stdin":null})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->input, SpawnSpec::Input::kPipe);
  EXPECT_FALSE(request->terminal);
  EXPECT_FALSE(request->process.directory);
}

TEST(StartMessage, WrongTypesAreRefused) {
  EXPECT_EQ(decode_start(kJson, R"({"process":{"cmd":1}})").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(decode_start(kJson, "[]").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(decode_start(kJson, "{").error().code(), Code::kInvalidArgument);
}

TEST(Selector, IsPidTagOrNothing) {
  const auto by_pid = decode_selector(kJson, R"({"process":{"pid":"12"}})");
  EXPECT_EQ(std::get<ByPid>(*by_pid).pid, 12u);
  const auto by_tag = decode_selector(kJson, R"({"process":{"tag":""}})");
  EXPECT_EQ(std::get<ByTag>(*by_tag).tag, "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*decode_selector(kJson, "{}")));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*decode_selector(kJson, R"({"process":{}})")));
}

TEST(Input, EmptyBytesAreSet) {
  const auto request = decode_send_input(kJson, R"({"process":{"pid":1},"input":{"stdin":""}})");
  ASSERT_TRUE(request && request->input);
  EXPECT_EQ(request->input->kind, InputKind::kStdin);
  EXPECT_EQ(request->input->data, "");
  const auto terminal = decode_send_input(kJson, R"({"input":{"pty":"SGk"}})");
  EXPECT_EQ(terminal->input->kind, InputKind::kTerminal);
  EXPECT_EQ(terminal->input->data, "Hi");
  EXPECT_FALSE(decode_send_input(kJson, R"({"input":{}})")->input);
  EXPECT_FALSE(decode_send_input(kJson, R"({"input":{"stdin":"*"}})"));
}

TEST(StreamInputMessage, KnowsItsThreeEvents) {
  EXPECT_TRUE(decode_stream_input(kJson, R"({"start":{"process":{"pid":3}}})")->start);
  const auto data = decode_stream_input(kJson, R"({"data":{"input":{"stdin":"SGk="}}})");
  EXPECT_TRUE(data->has_data);
  EXPECT_EQ(data->input->data, "Hi");
  const auto keepalive = decode_stream_input(kJson, R"({"keepalive":{}})");
  EXPECT_FALSE(keepalive->start || keepalive->has_data);
}

TEST(SignalMessage, ByNameOrNumber) {
  EXPECT_EQ(decode_send_signal(kJson, R"({"signal":"SIGNAL_SIGKILL"})")->signal, 9);
  EXPECT_EQ(decode_send_signal(kJson, R"({"signal":15})")->signal, 15);
  EXPECT_EQ(decode_send_signal(kJson, R"({"signal":2})")->signal, 2);
  EXPECT_EQ(decode_send_signal(kJson, "{}")->signal, 0);
  EXPECT_FALSE(decode_send_signal(kJson, R"({"signal":"SIGNAL_SIGHUP"})"));
}

TEST(UpdateMessage, SizeIsOptional) {
  EXPECT_FALSE(decode_update(kJson, R"({"process":{"pid":1}})")->terminal);
  EXPECT_EQ(decode_update(kJson, R"({"pty":{"size":{"cols":100,"rows":24}}})")->terminal,
            (TerminalSize{100, 24}));
}

TEST(Events, AreWrittenAsInTheCheatSheet) {
  std::string out;
  append_start_event(kJson, 1234, out);
  EXPECT_EQ(payload(out), R"({"event":{"start":{"pid":1234}}})");
  out.clear();
  append_output_event(kJson, OutputKind::kStdout, "hi\n", out);
  EXPECT_EQ(payload(out), R"({"event":{"data":{"stdout":"aGkK"}}})");
  out.clear();
  append_output_event(kJson, OutputKind::kStderr, "h", out);
  EXPECT_EQ(payload(out), R"({"event":{"data":{"stderr":"aA=="}}})");
  out.clear();
  append_output_event(kJson, OutputKind::kTerminal, std::string(300, 'x'), out);
  EXPECT_TRUE(payload(out).starts_with(R"({"event":{"data":{"pty":"eHh4)"));
  out.clear();
  append_keepalive_event(kJson, out);
  EXPECT_EQ(payload(out), R"({"event":{"keepalive":{}}})");
}

TEST(Events, EndTellsHowTheProcessEnded) {
  const auto end_of = [](int wait_status) {
    std::string out;
    append_end_event(kJson, describe_exit(wait_status), out);
    return payload(out);
  };
  EXPECT_EQ(end_of(0), R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})");
  EXPECT_EQ(
      end_of(1 << 8),
      R"({"event":{"end":{"exitCode":1,"exited":true,"status":"exit status 1","error":"exit status 1"}}})");
  EXPECT_EQ(
      end_of(9),
      R"({"event":{"end":{"exitCode":-1,"status":"signal: killed","error":"signal: killed"}}})");
  EXPECT_EQ(describe_exit(11 | 0x80).status, "signal: segmentation fault (core dumped)");
  EXPECT_EQ(describe_exit(15).status, "signal: terminated");
  EXPECT_EQ(describe_exit(31).status, "signal: signal 31");
}

TEST(ProcessList, ShowsTheRequestsConfig) {
  EXPECT_EQ(encode_process_list(kJson, {}), "{}");
  ProcessInfo info{{"sleep", {"1"}, {{"A", "b"}}, {}}, 7, "t"};
  EXPECT_EQ(
      encode_process_list(kJson, {info}),
      R"({"processes":[{"config":{"cmd":"sleep","args":["1"],"envs":{"A":"b"}},"pid":7,"tag":"t"}]})");
}

TEST(EntryMessage, IsWrittenAsInTheCheatSheet) {
  EntryInfo entry;
  entry.name = "f";
  entry.type = FileType::kFile;
  entry.path = "/home/user/f";
  entry.size = 4;
  entry.mode = 0644;
  entry.permissions = "-rw-r--r--";
  entry.owner = entry.group = "user";
  entry.modified = {1767323045, 678901234};
  EXPECT_EQ(
      encode_entry(kJson, entry),
      R"({"entry":{"name":"f","type":"FILE_TYPE_FILE","path":"/home/user/f","size":"4","mode":420,)"
      R"("permissions":"-rw-r--r--","owner":"user","group":"user","modifiedTime":"2026-01-02T03:04:05.678901234Z"}})");
  entry.symlink_target = "/x";
  entry.is_symlink = true;
  entry.metadata = {{"k", "v"}};
  EXPECT_TRUE(encode_entry(kJson, entry)
                  .ends_with(R"("symlinkTarget":"/x","metadata":{"k":"v"},"isSymlink":true}})"));
  EXPECT_EQ(encode_entries(kJson, {}), "{}");
}

TEST(TimestampText, HasZeroThreeSixOrNineDigits) {
  EXPECT_EQ(timestamp_text({0, 0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(timestamp_text({0, 5'000'000}), "1970-01-01T00:00:00.005Z");
  EXPECT_EQ(timestamp_text({0, 5'000}), "1970-01-01T00:00:00.000005Z");
  EXPECT_EQ(timestamp_text({-1, 1}), "1969-12-31T23:59:59.000000001Z");
  EXPECT_EQ(timestamp_text({INT64_MAX, 0}), "9999-12-31T23:59:59Z");
}

TEST(PermissionText, NamesKindAndSpecialBits) {
  EXPECT_EQ(permission_text(S_IFREG | 0644), "-rw-r--r--");
  EXPECT_EQ(permission_text(S_IFDIR | 0755), "drwxr-xr-x");
  EXPECT_EQ(permission_text(S_IFLNK | 0777), "Lrwxrwxrwx");
  EXPECT_EQ(permission_text(S_IFDIR | S_ISVTX | 0777), "dtrwxrwxrwx");
  EXPECT_EQ(permission_text(S_IFCHR | 0666), "Dcrw-rw-rw-");
  EXPECT_EQ(permission_text(S_IFREG | S_ISUID | 0755), "urwxr-xr-x");
}

TEST(InitMessage, SurvivesTheRoundTrip) {
  InitRequest request;
  request.timestamp = WallTime(std::chrono::microseconds(1'767'323'045'678'901));
  request.env_vars = Variables{{"A", "b\n\"c\""}};
  request.access_token = "secret";
  request.default_user = "user";
  request.default_workdir = "/code";
  request.sandbox_id = "iabc";
  request.template_id = "t";
  request.team_id = "team";
  request.control_token = "control";
  const auto back = decode_init(encode_init(request));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->timestamp, request.timestamp);
  EXPECT_EQ(back->env_vars, request.env_vars);
  EXPECT_EQ(back->access_token, request.access_token);
  EXPECT_EQ(back->default_user, request.default_user);
  EXPECT_EQ(back->default_workdir, request.default_workdir);
  EXPECT_EQ(back->sandbox_id, request.sandbox_id);
  EXPECT_EQ(back->template_id, request.template_id);
  EXPECT_EQ(back->team_id, request.team_id);
  EXPECT_EQ(back->control_token, request.control_token);
}

TEST(InitMessage, RefusesWhatItCannotServe) {
  EXPECT_TRUE(decode_init(""));
  EXPECT_TRUE(decode_init(R"({"volumeMounts":[],"caBundle":"","lifecycleID":"x"})"));
  EXPECT_FALSE(decode_init("nonsense"));
  EXPECT_FALSE(decode_init(R"({"accessToken":""})"));
  EXPECT_FALSE(decode_init(R"({"accessToken":"a\\b"})"));
  EXPECT_FALSE(decode_init(R"({"timestamp":"yesterday"})"));
  EXPECT_FALSE(decode_init(R"({"volumeMounts":[{"path":"/x"}]})"));
  EXPECT_FALSE(decode_init(R"({"caBundle":"PEM"})"));
}

}  // namespace
}  // namespace alcove::agent
