// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/gzip.h"
#include "agent/input_meter.h"
#include "agent/testing/agent_fixture.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

using testing::AgentTest;
using testing::kGoodEnd;
using testing::kKilledEnd;
using testing::StreamOutcome;
using ProcessServiceTest = AgentTest;

TEST_F(ProcessServiceTest, StartStreamsStartDataEndAndEndOfStream) {
  const StreamOutcome outcome = run_shell("echo out; echo err >&2; echo $0 $HOME $E2B_SANDBOX");
  EXPECT_EQ(outcome.status, 200);
  EXPECT_GT(outcome.pid, 0u);
  EXPECT_EQ(outcome.output, "out\n/bin/sh /root true\n");
  EXPECT_EQ(outcome.error_output, "err\n");
  EXPECT_EQ(outcome.end, kGoodEnd);
  EXPECT_EQ(outcome.end_of_stream, "{}");
  EXPECT_EQ(rpc("/process.Process/List", "{}").body, "{}");
}

TEST_F(ProcessServiceTest, ExitCodesAndSignalsAreReported) {
  EXPECT_NE(run_shell("exit 7").end->find(R"("exitCode":7,"exited":true)"), std::string::npos);
  EXPECT_EQ(run_shell("kill -9 $$").end, kKilledEnd);
  auto missing = open_stream("/process.Process/Start", R"({"process":{"cmd":"nosuch"}})");
  const StreamOutcome outcome = finish(missing);
  EXPECT_NE(outcome.end->find(R"("exitCode":127)"), std::string::npos);
  EXPECT_NE(outcome.error_output, "");
}

TEST_F(ProcessServiceTest, EnvironmentAndDirectoryOfTheRequest) {
  auto stream = open_stream(
      "/process.Process/Start",
      R"({"process":{"cmd":"/bin/sh","args":["-c","pwd; echo $A"],"envs":{"A":"x y"},"cwd":"/tmp"}})");
  EXPECT_EQ(finish(stream).output, "/tmp\nx y\n");
  auto wrong =
      open_stream("/process.Process/Start", R"({"process":{"cmd":"/bin/true","cwd":"/no/such"}})");
  const StreamOutcome outcome = finish(wrong);
  EXPECT_EQ(outcome.status, 200);
  EXPECT_FALSE(outcome.end);
  EXPECT_NE(outcome.end_of_stream->find("invalid_argument"), std::string::npos);
  EXPECT_NE(outcome.end_of_stream->find("/no/such"), std::string::npos);
}

TEST_F(ProcessServiceTest, UnknownBasicUserIsUnauthenticated) {
  const http::Headers headers = {{"Authorization", "Basic " + to_base64("nobody-here:")}};
  auto stream =
      open_stream("/process.Process/Start", R"({"process":{"cmd":"/bin/true"}})", headers);
  const StreamOutcome outcome = finish(stream);
  EXPECT_EQ(outcome.status, 200);
  EXPECT_NE(outcome.end_of_stream->find("unauthenticated"), std::string::npos);
  const auto unary = rpc("/process.Process/List", "{}", headers);
  EXPECT_EQ(unary.status, 401);
  EXPECT_NE(unary.body.find(R"("code":"unauthenticated")"), std::string::npos);
}

TEST_F(ProcessServiceTest, UnknownBasicUserOfABinaryStreamIsAnsweredInBinary) {
  const http::Response answer = call("POST", "/process.Process/Start",
                                     {{"Content-Type", "application/connect+proto"},
                                      {"Authorization", "Basic " + to_base64("nobody-here:")}},
                                     std::string(5, '\0'));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.get("Content-Type"), "application/connect+proto");
  EXPECT_NE(answer.body.find("unauthenticated"), std::string::npos);
}

TEST_F(ProcessServiceTest, UnknownMethodsAreUnimplementedInTheShapeOfTheCall) {
  for (const std::string service : {"process.Process", "filesystem.Filesystem"}) {
    const std::string target = cat("/", service, "/Nope");
    for (const std::string codec : {"json", "proto"}) {
      const std::string type = "application/connect+" + codec;
      const http::Response streamed =
          call("POST", target, {{"Content-Type", type}}, std::string("\0\0\0\0\2{}", 7));
      EXPECT_EQ(streamed.status, 200);
      EXPECT_EQ(streamed.headers.get("Content-Type"), type);
      EXPECT_EQ(streamed.body[0], 2);
      EXPECT_NE(streamed.body.find("\"unimplemented\""), std::string::npos) << streamed.body;
      const http::Response unary =
          call("POST", target, {{"Content-Type", "application/" + codec}}, "{}");
      EXPECT_EQ(unary.status, 501);
      EXPECT_NE(unary.body.find("\"unimplemented\""), std::string::npos) << unary.body;
    }
    EXPECT_EQ(call("GET", target).status, 405);
    EXPECT_EQ(call("POST", target, {{"Content-Type", "text/plain"}}, "{}").status, 415);
  }
  // A known one of the wrong kind is no unknown one.
  EXPECT_EQ(
      call("POST", "/process.Process/List", {{"Content-Type", "application/connect+json"}}).status,
      415);
}

TEST_F(ProcessServiceTest, DeadlineIsATimeoutAndKillsTheProcess) {
  const auto before = std::chrono::steady_clock::now();
  const StreamOutcome outcome = run_shell("exec sleep 100", "", {{"Connect-Timeout-Ms", "200"}});
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_FALSE(outcome.end);
  EXPECT_NE(outcome.end_of_stream->find("deadline_exceeded"), std::string::npos);
  auto late = connect_to(outcome.pid);
  EXPECT_EQ(finish(late).end, kKilledEnd);
}

TEST_F(ProcessServiceTest, DeadlineKillsEvenIfTheClientLeft) {
  auto stream = start("exec sleep 100", "", {{"Connect-Timeout-Ms", "300"}});
  stream.connection.reset();
  auto second = connect_to(stream.outcome.pid);
  EXPECT_EQ(finish(second).end, kKilledEnd);
}

TEST_F(ProcessServiceTest, DeadlineOfConnectEndsOnlyThatStream) {
  auto stream = start("read line; echo $line");
  auto second = connect_to(stream.outcome.pid, {{"Connect-Timeout-Ms", "50"}});
  EXPECT_NE(finish(second).end_of_stream->find("deadline_exceeded"), std::string::npos);
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(stream.outcome.pid, "go\n")).body,
            "{}");
  EXPECT_EQ(finish(stream).output, "go\n");
}

TEST_F(ProcessServiceTest, ClientMayLeaveAndConnectAgain) {
  auto stream = start("echo first; read line; echo second");
  ASSERT_TRUE(next(stream));
  const uint32_t pid = stream.outcome.pid;
  stream.connection.reset();
  auto again = connect_to(pid);
  EXPECT_EQ(again.outcome.pid, pid);
  rpc("/process.Process/SendInput", stdin_message(pid, "go\n"));
  const StreamOutcome outcome = finish(again);
  EXPECT_EQ(outcome.output, "second\n");
  EXPECT_EQ(outcome.end, kGoodEnd);
  // It is over, but not forgotten.
  auto late = connect_to(pid);
  const StreamOutcome retained = finish(late);
  EXPECT_EQ(retained.pid, pid);
  EXPECT_EQ(retained.end, kGoodEnd);
  EXPECT_EQ(retained.end_of_stream, "{}");
}

TEST_F(ProcessServiceTest, OutputWithoutAListenerIsDiscarded) {
  const std::string done = dir_ / "done";
  auto stream = start(cat("read line; head -c 5000000 /dev/zero; touch ", done));
  const uint32_t pid = stream.outcome.pid;
  stream.connection.reset();
  rpc("/process.Process/SendInput", stdin_message(pid, "go\n"));
  auto wait = connect_to(pid);
  finish(wait);
  EXPECT_EQ(::access(done.c_str(), F_OK), 0);
}

TEST_F(ProcessServiceTest, SlowReaderHoldsTheProcessUpAndLosesNothing) {
  constexpr size_t kSize = 32u << 20;
  const std::string done = dir_ / "done";
  auto stream = start(cat("head -c ", kSize, " /dev/zero; touch ", done));
  // Nothing is read for a while: the process must be stuck in a full pipe by then.
  run(net::sleep_for(std::chrono::milliseconds(300)));
  EXPECT_NE(::access(done.c_str(), F_OK), 0);
  const StreamOutcome outcome = finish(stream);
  EXPECT_EQ(outcome.output.size(), kSize);
  EXPECT_EQ(outcome.end, kGoodEnd);
}

TEST_F(ProcessServiceTest, EverySubscriberGetsEverything) {
  auto first = start("read line; head -c 3000000 /dev/zero; echo end");
  auto second = connect_to(first.outcome.pid);
  auto third = connect_to(first.outcome.pid);
  rpc("/process.Process/SendInput", stdin_message(first.outcome.pid, "go\n"));
  bool open = true;
  while (open) {
    open = false;
    for (auto* stream : {&first, &second, &third}) {
      if (!stream->outcome.end_of_stream) open = next(*stream) || open;
    }
  }
  for (auto* stream : {&first, &second, &third}) {
    EXPECT_EQ(stream->outcome.output.size(), 3000004u);
    EXPECT_EQ(stream->outcome.end, kGoodEnd);
  }
}

TEST_F(ProcessServiceTest, EndWaitsForHoldersOfTheOutput) {
  auto stream = start("exec 3<&0; (read line <&3; echo late) & echo early");
  ASSERT_TRUE(next(stream));
  EXPECT_EQ(stream.outcome.output, "early\n");
  EXPECT_NE(rpc("/process.Process/List", "{}").body.find(cat("\"pid\":", stream.outcome.pid)),
            std::string::npos);
  rpc("/process.Process/SendInput", stdin_message(stream.outcome.pid, "go\n"));
  const StreamOutcome outcome = finish(stream);
  EXPECT_EQ(outcome.output, "early\nlate\n");
  EXPECT_EQ(outcome.end, kGoodEnd);
}

TEST_F(ProcessServiceTest, EndDoesNotWaitForHoldersAfterAKill) {
  auto stream = start("sleep 5 & echo up; exec sleep 100");
  ASSERT_TRUE(next(stream));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(rpc("/process.Process/SendSignal",
                selector(stream.outcome.pid, R"(,"signal":"SIGNAL_SIGKILL")"))
                .body,
            "{}");
  EXPECT_EQ(finish(stream).end, kKilledEnd);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
}

TEST_F(ProcessServiceTest, SignalsReachProcessesWhoseOutputIsHeldByOthers) {
  auto stream = start("sleep 5 & echo up");
  ASSERT_TRUE(next(stream));
  while (run_shell(cat("kill -0 ", stream.outcome.pid)).end == kGoodEnd) {
  }
  const auto before = std::chrono::steady_clock::now();
  rpc("/process.Process/SendSignal", selector(stream.outcome.pid, R"(,"signal":"SIGNAL_SIGTERM")"));
  EXPECT_EQ(finish(stream).end, kGoodEnd);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
}

TEST_F(ProcessServiceTest, KilledProcessIsReapedAtOnce) {
  auto stream = start("exec sleep 100");
  rpc("/process.Process/SendSignal", selector(stream.outcome.pid, R"(,"signal":9)"));
  finish(stream);
  EXPECT_NE(run_shell(cat("kill -0 ", stream.outcome.pid)).end->find("\"exitCode\":1"),
            std::string::npos);
}

TEST_F(ProcessServiceTest, ErrorsOfTheUnaryCalls) {
  const auto code_of = [&](const std::string& method, const std::string& message) {
    const auto response = rpc("/process.Process/" + method, message);
    const auto object = connect::parse_message(response.body);
    return object ? connect::read_string(*object, "code").value_or("?") : response.body;
  };
  EXPECT_EQ(code_of("SendSignal", selector(999999, R"(,"signal":9)")), "not_found");
  EXPECT_EQ(code_of("SendSignal", selector(1, R"(,"signal":2)")), "unimplemented");
  EXPECT_EQ(code_of("SendInput", stdin_message(999999, "x")), "not_found");
  EXPECT_EQ(code_of("SendInput", "{}"), "unimplemented");
  EXPECT_EQ(code_of("CloseStdin", selector(999999)), "not_found");
  EXPECT_EQ(code_of("Update", selector(999999)), "not_found");
  EXPECT_EQ(code_of("NoSuchMethod", "{}"), "unimplemented");
  EXPECT_EQ(code_of("List", "nonsense"), "");
  auto stream = open_stream("/process.Process/Connect", selector(999999));
  EXPECT_NE(finish(stream).end_of_stream->find("not_found"), std::string::npos);
}

TEST_F(ProcessServiceTest, InputIsWrittenAndClosed) {
  auto stream = start("cat");
  const uint32_t pid = stream.outcome.pid;
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "hello\n")).body, "{}");
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "")).body, "{}");
  ASSERT_TRUE(next(stream));
  EXPECT_EQ(stream.outcome.output, "hello\n");
  EXPECT_NE(rpc("/process.Process/SendInput", selector(pid, R"(,"input":{"pty":"aGk="})"))
                .body.find("internal"),
            std::string::npos);
  EXPECT_EQ(rpc("/process.Process/CloseStdin", selector(pid)).body, "{}");
  const StreamOutcome outcome = finish(stream);
  EXPECT_EQ(outcome.output, "hello\n");
  EXPECT_EQ(outcome.end, kGoodEnd);
}

TEST_F(ProcessServiceTest, ProcessWithoutStdinRefusesInput) {
  auto stream = start("exec sleep 100", R"(,"stdin":false)");
  const uint32_t pid = stream.outcome.pid;
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "x")).status, 500);
  EXPECT_EQ(rpc("/process.Process/CloseStdin", selector(pid)).status, 200);
  rpc("/process.Process/SendSignal", selector(pid, R"(,"signal":9)"));
  finish(stream);
}

TEST_F(ProcessServiceTest, LargeInputWaitsForTheReader) {
  auto stream = start("sleep 0.3; wc -c");
  const uint32_t pid = stream.outcome.pid;
  const std::string data(1u << 20, 'x');
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, data)).body, "{}");
  rpc("/process.Process/CloseStdin", selector(pid));
  EXPECT_EQ(trim(finish(stream).output), std::to_string(data.size()));
}

TEST_F(ProcessServiceTest, BlockedInputEndsAtItsDeadlineAndFreesTheNext) {
  auto stream = start("sleep 0.6; cat >/dev/null; echo done");
  const uint32_t pid = stream.outcome.pid;
  const auto blocked =
      rpc("/process.Process/SendInput", stdin_message(pid, std::string(200'000, 'x')),
          {{"Connect-Timeout-Ms", "100"}});
  EXPECT_EQ(blocked.status, 504);
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "x")).status, 200);
  rpc("/process.Process/CloseStdin", selector(pid));
  EXPECT_EQ(finish(stream).output, "done\n");
}

TEST_F(ProcessServiceTest, TagsSelectProcesses) {
  auto stream = start("exec sleep 100", R"(,"tag":"mine")");
  EXPECT_NE(rpc("/process.Process/List", "{}").body.find(R"("tag":"mine")"), std::string::npos);
  EXPECT_EQ(
      rpc("/process.Process/SendSignal", R"({"process":{"tag":"mine"},"signal":"SIGNAL_SIGKILL"})")
          .status,
      200);
  EXPECT_EQ(finish(stream).end, kKilledEnd);
}

TEST_F(ProcessServiceTest, LastEndOfATagIsTheOneThatIsRemembered) {
  const auto tagged_end = [this] {
    auto stream = open_stream("/process.Process/Connect", R"({"process":{"tag":"mine"}})");
    return finish(stream).end.value_or("none");
  };
  EXPECT_EQ(tagged_end(), "none");
  const uint32_t first = run_shell("exit 1", R"(,"tag":"mine")").pid;
  EXPECT_NE(tagged_end().find(R"("exitCode":1)"), std::string::npos);
  auto again = start("read line; exit 2", R"(,"tag":"mine")");
  // The live one is meant, not the end of the other.
  auto second = open_stream("/process.Process/Connect", R"({"process":{"tag":"mine"}})");
  ASSERT_TRUE(next(second));
  EXPECT_NE(second.outcome.pid, first);
  rpc("/process.Process/SendInput", stdin_message(again.outcome.pid, "go\n"));
  EXPECT_NE(finish(second).end->find(R"("exitCode":2)"), std::string::npos);
  finish(again);
  EXPECT_NE(tagged_end().find(R"("exitCode":2)"), std::string::npos);
}

// Input for processes that read none of it.
class WaitingInputTest : public AgentTest {
 protected:
  void TearDown() override {
    rpc("/process.Process/SendSignal", selector(pid(), R"(,"signal":9)"));
    finish(stuck_);
    AgentTest::TearDown();
  }
  void begin() { stuck_ = start("exec sleep 100"); }
  uint32_t pid() const { return stuck_.outcome.pid; }

  using Connection = std::unique_ptr<http::ClientConnection>;

  // A call under way; a stream's body stays open.
  Connection begin_call(const std::string& method, http::Headers headers, std::string_view body,
                        bool is_stream) {
    auto connection = connect();
    const auto length = is_stream ? std::nullopt : std::optional<uint64_t>(body.size());
    EXPECT_TRUE(run(connection->write_head(
        head("POST", "/process.Process/" + method, std::move(headers)), length, body)));
    if (!is_stream) EXPECT_TRUE(run(connection->finish_body()));
    return connection;
  }
  // In the binary codec, where a message is hardly longer than its data.
  Connection stream_input(std::string_view data) {
    std::string messages;
    connect::append_envelope(messages, field(1, field(1, cat("\x08", varint(pid())))));
    connect::append_envelope(messages, field(2, field(2, field(1, data))));
    return begin_call("StreamInput", {{"Content-Type", "application/connect+proto"}}, messages,
                      /*is_stream=*/true);
  }
  // Sends a little input again and again until the answer, after a while at most, is this.
  bool is_answered(int status, const std::string& message, http::Headers headers = {}) {
    headers.add("Connect-Timeout-Ms", "100");
    http::Response answer;
    for (int i = 0; i < 200; ++i) {
      answer = rpc("/process.Process/SendInput", message, headers);
      if (answer.status == status) return true;
      run(net::sleep_for(std::chrono::milliseconds(20)));
    }
    ADD_FAILURE() << "the last was " << answer.status << " " << answer.body;
    return false;
  }

  static std::string varint(uint64_t number) {
    std::string out;
    for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
    return out + static_cast<char>(number);
  }
  static std::string field(int number, std::string_view content) {
    return cat(std::string(1, static_cast<char>(number << 3 | 2)), varint(content.size()), content);
  }
  static size_t memory_in_use() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  }

  static constexpr size_t kMiB = 1u << 20;
  Stream stuck_;
};

TEST_F(WaitingInputTest, CompressedMessagesCountAsWhatTheyAre) {
  begin();
  GzipWriter packer;
  std::string message = packer.add(stdin_message(pid(), std::string(45 * kMiB, 'x')));
  message += packer.finish();
  ASSERT_LT(message.size(), kMiB);
  const http::Headers headers = {{"Content-Encoding", "gzip"}};
  http::Headers with_type = headers;
  with_type.add("Content-Type", "application/json");
  std::vector<Connection> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(begin_call("SendInput", with_type, message, /*is_stream=*/false));
  }
  // Two times 45 MiB are held, and this would be 60 until it is decoded.
  EXPECT_TRUE(is_answered(429, message, headers));
}

TEST_F(WaitingInputTest, NothingButTheDataOfAStreamIsKept) {
  begin();
  const size_t before = memory_in_use();
  const auto waiting = stream_input(std::string(16 * kMiB, 'x'));
  ASSERT_TRUE(is_answered(504, stdin_message(pid(), "x")));
  EXPECT_LT(memory_in_use(), before + 20 * kMiB);
}

TEST_F(WaitingInputTest, NothingButTheDataOfACallIsKept) {
  begin();
  const size_t before = memory_in_use();
  const auto waiting = begin_call("SendInput", {{"Content-Type", "application/json"}},
                                  stdin_message(pid(), std::string(15 * kMiB, 'x')),
                                  /*is_stream=*/false);
  ASSERT_TRUE(is_answered(504, stdin_message(pid(), "x")));
  EXPECT_LT(memory_in_use(), before + 19 * kMiB);
}

TEST_F(WaitingInputTest, ProcessIsFoundAndKilledHoweverMuchInputWaits) {
  begin();
  std::vector<Connection> waiting;
  for (const size_t size : {60 * kMiB, 60 * kMiB, 8 * kMiB}) {
    waiting.push_back(stream_input(std::string(size, 'x')));
  }
  static_assert(InputMeter::kMost == 128 * kMiB);
  // To nobody, so that no input of these calls waits in the way of the last stream's.
  ASSERT_TRUE(is_answered(429, stdin_message(999999, "x")));
  EXPECT_NE(rpc("/process.Process/List", "{}").body.find(cat("\"pid\":", pid())),
            std::string::npos);
  EXPECT_EQ(rpc("/process.Process/SendSignal", selector(pid(), R"(,"signal":9)")).status, 200);
  EXPECT_EQ(finish(stuck_).end, kKilledEnd);
}

TEST_F(ProcessServiceTest, SmallCallsTakeNoLargeMessage) {
  const std::string message = selector(1, cat(R"(,"x":")", std::string(1u << 20, 'x'), "\""));
  for (const char* method : {"List", "CloseStdin", "SendSignal", "Update"}) {
    EXPECT_EQ(rpc(cat("/process.Process/", method), message).status, 429) << method;
  }
  auto stream = open_stream("/process.Process/Connect", message);
  EXPECT_NE(finish(stream).end_of_stream->find("resource_exhausted"), std::string::npos);
}

TEST_F(ProcessServiceTest, StreamInputReachesTheProcessWhileTheBodyIsOpen) {
  auto stream = start("cat");
  const uint32_t pid = stream.outcome.pid;
  const auto input = connect();
  std::string first;
  connect::append_envelope(first, cat(R"({"start":)", selector(pid), "}"));
  connect::append_envelope(first, R"({"data":{"input":{"stdin":"b25l"}}})");
  ASSERT_TRUE(run(input->write_head(
      head("POST", "/process.Process/StreamInput", {{"Content-Type", "application/connect+json"}}),
      std::nullopt, first)));
  ASSERT_TRUE(next(stream));
  EXPECT_EQ(stream.outcome.output, "one");
  std::string second;
  connect::append_envelope(second, R"({"keepalive":{}})");
  connect::append_envelope(second, R"({"data":{"input":{"stdin":"dHdv"}}})");
  ASSERT_TRUE(run(input->write_body(second)));
  ASSERT_TRUE(next(stream));
  EXPECT_EQ(stream.outcome.output, "onetwo");
  ASSERT_TRUE(run(input->finish_body()));
  const auto answer = run(input->read_head("POST"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(*run(input->body().read_all(1000)), std::string("\0\0\0\0\2{}\2\0\0\0\2{}", 14));
  // The end of the body does not close stdin.
  rpc("/process.Process/CloseStdin", selector(pid));
  EXPECT_EQ(finish(stream).end, kGoodEnd);
}

TEST_F(ProcessServiceTest, StreamInputToAnUnknownProcessIsAnsweredBeforeTheBodyEnds) {
  const auto input = connect();
  std::string first;
  connect::append_envelope(first, cat(R"({"start":)", selector(999999), "}"));
  ASSERT_TRUE(run(input->write_head(
      head("POST", "/process.Process/StreamInput", {{"Content-Type", "application/connect+json"}}),
      std::nullopt, first)));
  const auto answer = run(input->read_head("POST"));
  ASSERT_TRUE(answer);
  EXPECT_NE(run(input->body().read_all(1000))->find("not_found"), std::string::npos);
}

TEST_F(ProcessServiceTest, DeadlineOfStreamInputEndsOnlyThatCall) {
  auto stream = start("cat");
  const auto input = connect();
  std::string first;
  connect::append_envelope(first, cat(R"({"start":)", selector(stream.outcome.pid), "}"));
  connect::append_envelope(first, R"({"data":{"input":{"stdin":"b25l"}}})");
  ASSERT_TRUE(run(input->write_head(
      head("POST", "/process.Process/StreamInput",
           {{"Content-Type", "application/connect+json"}, {"Connect-Timeout-Ms", "200"}}),
      std::nullopt, first)));
  const auto answer = run(input->read_head("POST"));
  ASSERT_TRUE(answer);
  EXPECT_NE(run(input->body().read_all(1000))->find("deadline_exceeded"), std::string::npos);
  rpc("/process.Process/CloseStdin", selector(stream.outcome.pid));
  const StreamOutcome outcome = finish(stream);
  EXPECT_EQ(outcome.output, "one");
  EXPECT_EQ(outcome.end, kGoodEnd);
}

TEST_F(ProcessServiceTest, InputOfAClientThatLeftBlocksNobody) {
  auto stream = start("sleep 0.5; head -c 3 >/dev/null; cat");
  const uint32_t pid = stream.outcome.pid;
  auto leaving = connect();
  const std::string message = stdin_message(pid, std::string(200'000, 'x'));
  ASSERT_TRUE(run(leaving->write_head(
      head("POST", "/process.Process/SendInput", {{"Content-Type", "application/json"}}),
      message.size(), message)));
  run(net::sleep_for(std::chrono::milliseconds(100)));
  leaving.reset();
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "end")).status, 200);
  rpc("/process.Process/CloseStdin", selector(pid));
  // What fitted into the pipe had been written before.
  EXPECT_EQ(finish(stream).output, std::string(65536 - 3, 'x') + "end");
}

TEST_F(ProcessServiceTest, StreamedInputOfAClientThatLeftBlocksNobody) {
  auto stream = start("sleep 0.5; head -c 3 >/dev/null; cat");
  const uint32_t pid = stream.outcome.pid;
  auto leaving = connect();
  std::string messages;
  connect::append_envelope(messages, cat(R"({"start":)", selector(pid), "}"));
  connect::append_envelope(messages, cat(R"({"data":{"input":{"stdin":")",
                                         to_base64(std::string(200'000, 'x')), "\"}}}"));
  ASSERT_TRUE(run(leaving->write_head(
      head("POST", "/process.Process/StreamInput", {{"Content-Type", "application/connect+json"}}),
      std::nullopt, messages)));
  run(net::sleep_for(std::chrono::milliseconds(100)));
  leaving.reset();
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "end")).status, 200);
  rpc("/process.Process/CloseStdin", selector(pid));
  // What fitted into the pipe had been written before.
  EXPECT_EQ(finish(stream).output, std::string(65536 - 3, 'x') + "end");
}

TEST_F(ProcessServiceTest, DeadlineOfStreamInputEndsABlockedWrite) {
  auto stream = start("exec sleep 100");
  const uint32_t pid = stream.outcome.pid;
  const auto input = connect();
  std::string messages;
  connect::append_envelope(messages, cat(R"({"start":)", selector(pid), "}"));
  connect::append_envelope(messages, cat(R"({"data":{"input":{"stdin":")",
                                         to_base64(std::string(200'000, 'x')), "\"}}}"));
  // The next message comes while the write is blocked.
  connect::append_envelope(messages, R"({"keepalive":{}})");
  ASSERT_TRUE(run(input->write_head(
      head("POST", "/process.Process/StreamInput",
           {{"Content-Type", "application/connect+json"}, {"Connect-Timeout-Ms", "200"}}),
      std::nullopt, messages)));
  const auto answer = run(input->read_head("POST"));
  ASSERT_TRUE(answer);
  EXPECT_NE(run(input->body().read_all(1000))->find("deadline_exceeded"), std::string::npos);
  EXPECT_EQ(rpc("/process.Process/SendSignal", selector(pid, R"(,"signal":9)")).status, 200);
  EXPECT_EQ(finish(stream).end, kKilledEnd);
}

TEST_F(ProcessServiceTest, StreamedInputWaitsForTheReaderAndLosesNothing) {
  auto stream = start("for i in 1 2 3 4; do sleep 0.1; head -c 100000 | wc -c; done; wc -c");
  const uint32_t pid = stream.outcome.pid;
  const auto input = connect();
  std::string messages;
  connect::append_envelope(messages, cat(R"({"start":)", selector(pid), "}"));
  for (int i = 0; i < 9; ++i) {
    connect::append_envelope(messages, cat(R"({"data":{"input":{"stdin":")",
                                           to_base64(std::string(70'000, 'x')), "\"}}}"));
  }
  ASSERT_TRUE(run(input->write_head(
      head("POST", "/process.Process/StreamInput", {{"Content-Type", "application/connect+json"}}),
      std::nullopt, messages)));
  ASSERT_TRUE(run(input->finish_body()));
  const auto answer = run(input->read_head("POST"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(*run(input->body().read_all(1000)), std::string("\0\0\0\0\2{}\2\0\0\0\2{}", 14));
  rpc("/process.Process/CloseStdin", selector(pid));
  EXPECT_EQ(finish(stream).output, "100000\n100000\n100000\n100000\n230000\n");
}

TEST_F(ProcessServiceTest, TerminalEchoesResizesAndEnds) {
  auto stream =
      start("stty size; read line; stty size; exit 4", R"(,"pty":{"size":{"cols":80,"rows":24}})");
  const uint32_t pid = stream.outcome.pid;
  while (stream.outcome.terminal.find("24 80\r\n") == std::string::npos) ASSERT_TRUE(next(stream));
  EXPECT_EQ(
      rpc("/process.Process/Update", selector(pid, R"(,"pty":{"size":{"cols":100,"rows":30}})"))
          .status,
      200);
  EXPECT_EQ(rpc("/process.Process/CloseStdin", selector(pid)).status, 500);
  EXPECT_EQ(rpc("/process.Process/SendInput", stdin_message(pid, "x")).status, 500);
  EXPECT_EQ(rpc("/process.Process/SendInput",
                selector(pid, cat(R"(,"input":{"pty":")", to_base64("go\n"), "\"}")))
                .status,
            200);
  const StreamOutcome outcome = finish(stream);
  EXPECT_NE(outcome.terminal.find("go\r\n"), std::string::npos);
  EXPECT_NE(outcome.terminal.find("30 100\r\n"), std::string::npos);
  EXPECT_NE(outcome.end->find(R"("exitCode":4)"), std::string::npos);
  EXPECT_EQ(outcome.output, "");
}

TEST_F(ProcessServiceTest, KeepaliveFillsSilence) {
  auto stream = start("sleep 2.5", "", {{"Keepalive-Ping-Interval", "1"}});
  EXPECT_EQ(finish(stream).keepalives, 2u);
}

TEST_F(ProcessServiceTest, ManyQuickCommandsLeakNothing) {
  const auto count_fds = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  run_shell("true");
  const auto before = count_fds();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(run_shell("echo x").output, "x\n");
  // Closed connections of the last calls may still be on their way out.
  EXPECT_LE(count_fds(), before + 2);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ProcessServiceTest, BinaryCallsGetBinaryAnswers) {
  // Start of /bin/echo with the argument "hi".
  const std::string start("\x0a\x0f\x0a\x09/bin/echo\x12\x02hi", 17);
  std::string body;
  connect::append_envelope(body, start);
  const http::Response answer =
      call("POST", "/process.Process/Start", {{"Content-Type", "application/connect+proto"}}, body);
  EXPECT_EQ(answer.headers.get("Content-Type"), "application/connect+proto");
  EXPECT_NE(answer.body.find(std::string("\x0a\x07\x12\x05\x0a\x03hi\n", 10)), std::string::npos);
  EXPECT_NE(answer.body.find("exit status 0"), std::string::npos);
  // The end of the stream is JSON in every codec.
  EXPECT_TRUE(answer.body.ends_with(std::string("\x02\x00\x00\x00\x02{}", 7)));
  const http::Response list =
      call("POST", "/process.Process/List", {{"Content-Type", "application/proto"}}, "");
  EXPECT_EQ(list.status, 200);
  EXPECT_EQ(list.headers.get("Content-Type"), "application/proto");
  EXPECT_EQ(list.body, "");
}

}  // namespace
}  // namespace alcove::agent
