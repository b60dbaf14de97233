// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "agent/agent.h"
#include "agent/client.h"
#include "agent/testing/temp_dir.h"
#include "base/base64.h"
#include "base/strings.h"
#include "connect/connect.h"
#include "connect/json_codec.h"
#include "http/client_connection.h"
#include "net/listener.h"
#include "net/tcp_stream.h"
#include "net/testing/loop_runner.h"

namespace alcove::agent::testing {

// What a Start or Connect stream brought.
struct StreamOutcome {
  int status = 0;
  uint32_t pid = 0;
  std::string output;
  std::string error_output;
  std::string terminal;
  size_t data_events = 0;
  size_t keepalives = 0;
  // JSON of the end event; nothing if none came.
  std::optional<std::string> end;
  // JSON of the end of the stream; nothing if the stream was cut.
  std::optional<std::string> end_of_stream;
};

// One call of a streaming RPC whose answer is read event by event.
class EventReader {
 public:
  explicit EventReader(http::BodyReader& body) : body_(body) {}

  // Adds the next envelope to `outcome`; false at the end of the body.
  Task<bool> next(StreamOutcome& outcome) {
    while (!take(outcome)) {
      char buffer[65536];
      const auto count = co_await body_.read(buffer);
      if (!count || *count == 0) co_return false;
      received_.append(buffer, *count);
    }
    co_return true;
  }

 private:
  bool take(StreamOutcome& outcome) {
    const std::string_view rest = std::string_view(received_).substr(used_);
    if (rest.size() < 5) return false;
    uint32_t size = 0;
    for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(rest[i]);
    if (rest.size() < 5 + size) return false;
    add(rest[0], rest.substr(5, size), outcome);
    used_ += 5 + size;
    if (used_ == received_.size()) {
      received_.clear();
      used_ = 0;
    }
    return true;
  }

  static void add(char flags, std::string_view message, StreamOutcome& outcome) {
    if (flags == 2) {
      outcome.end_of_stream = std::string(message);
      return;
    }
    const auto object = connect::parse_message(message);
    ASSERT_TRUE(object) << message;
    const auto* event = *connect::read_object(*object, "event");
    ASSERT_NE(event, nullptr) << message;
    if (const auto* start = *connect::read_object(*event, "start")) {
      outcome.pid = *connect::read_uint32(*start, "pid");
    } else if (const auto* data = *connect::read_object(*event, "data")) {
      ++outcome.data_events;
      outcome.output += *connect::read_bytes(*data, "stdout");
      outcome.error_output += *connect::read_bytes(*data, "stderr");
      outcome.terminal += *connect::read_bytes(*data, "pty");
    } else if (connect::find_field(*event, "end") != nullptr) {
      outcome.end = std::string(message);
    } else if (connect::find_field(*event, "keepalive") != nullptr) {
      ++outcome.keepalives;
    }
  }

  http::BodyReader& body_;
  std::string received_;
  size_t used_ = 0;
};

// An agent in this process, on a port of its own, and calls to it. Everything runs on one loop.
class AgentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  }

  void SetUp() override {
    AgentOptions options;
    options.identity_directory = dir_ / "identity";
    auto agent = Agent::create(loop_, options);
    ASSERT_TRUE(agent) << agent.error().message();
    agent_ = *std::move(agent);
    auto listener = net::make_listener("127.0.0.1", 0);
    ASSERT_TRUE(listener) << listener.error().message();
    port_ = *net::local_port(*listener);
    ASSERT_TRUE(agent_->serve(*std::move(listener)));
  }

  template <typename T>
  T run(Task<T> task) {
    return net::testing::run(loop_, std::move(task));
  }
  void run(Task<void> task) { net::testing::run(loop_, std::move(task)); }

  std::unique_ptr<http::ClientConnection> connect() {
    auto stream =
        run(net::finish_connect(*net::start_connect("127.0.0.1", port_), std::chrono::seconds(5)));
    EXPECT_TRUE(stream) << stream.error().message();
    return std::make_unique<http::ClientConnection>(*std::move(stream));
  }

  static http::RequestHead head(std::string method, std::string target, http::Headers headers) {
    http::RequestHead request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.headers = std::move(headers);
    request.headers.add("Host", "localhost");
    return request;
  }

  http::Response call(std::string method, std::string target, http::Headers headers = {},
                      std::string body = {}) {
    const auto connection = connect();
    auto response =
        run(http::fetch(*connection, head(std::move(method), std::move(target), std::move(headers)),
                        std::move(body), 1ull << 30));
    EXPECT_TRUE(response) << response.error().message();
    return response ? *std::move(response) : http::Response{};
  }

  http::Response rpc(const std::string& target, std::string message, http::Headers headers = {}) {
    headers.add("Content-Type", "application/json");
    return call("POST", target, std::move(headers), std::move(message));
  }

  // A streaming call under way.
  struct Stream {
    std::unique_ptr<http::ClientConnection> connection;
    std::unique_ptr<EventReader> reader;
    StreamOutcome outcome;
  };

  Stream open_stream(const std::string& target, std::string_view message,
                     http::Headers headers = {}) {
    Stream stream;
    stream.connection = connect();
    headers.add("Content-Type", "application/connect+json");
    std::string body;
    connect::append_envelope(body, message);
    EXPECT_TRUE(run(stream.connection->write_head(head("POST", target, std::move(headers)),
                                                  body.size(), body)));
    EXPECT_TRUE(run(stream.connection->finish_body()));
    const auto answer = run(stream.connection->read_head("POST"));
    EXPECT_TRUE(answer) << answer.error().message();
    if (answer) {
      stream.outcome.status = answer->status;
      EXPECT_EQ(answer->headers.get("Content-Type"), "application/connect+json");
    }
    stream.reader = std::make_unique<EventReader>(stream.connection->body());
    return stream;
  }

  bool next(Stream& stream) { return run(stream.reader->next(stream.outcome)); }

  StreamOutcome finish(Stream& stream) {
    while (next(stream)) {
    }
    return stream.outcome;
  }

  static std::string shell_message(std::string_view script, std::string_view more = "") {
    std::string message = R"({"process":{"cmd":"/bin/sh","args":["-c",)";
    connect::append_json_string(message, script);
    message += cat("]}", more, "}");
    return message;
  }

  Stream start(std::string_view script, std::string_view more = "", http::Headers headers = {}) {
    Stream stream =
        open_stream("/process.Process/Start", shell_message(script, more), std::move(headers));
    next(stream);
    return stream;
  }

  StreamOutcome run_shell(std::string_view script, std::string_view more = "",
                          http::Headers headers = {}) {
    Stream stream = start(script, more, std::move(headers));
    return finish(stream);
  }

  Stream connect_to(uint32_t pid, http::Headers headers = {}) {
    Stream stream = open_stream("/process.Process/Connect", selector(pid), std::move(headers));
    next(stream);
    return stream;
  }

  static std::string selector(uint32_t pid, std::string_view more = "") {
    return cat(R"({"process":{"pid":)", pid, "}", more, "}");
  }

  static std::string stdin_message(uint32_t pid, std::string_view data) {
    return selector(pid, cat(R"(,"input":{"stdin":")", to_base64(data), "\"}"));
  }

  void init(const InitRequest& request, std::optional<std::string> control = {}) {
    const auto connection = connect();
    const auto done = run(initialize(*connection, request, std::move(control)));
    ASSERT_TRUE(done) << done.error().message();
  }

  TempDir dir_;
  boost::asio::io_context loop_{1};
  std::unique_ptr<Agent> agent_;
  uint16_t port_ = 0;
};

inline constexpr std::string_view kGoodEnd =
    R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})";
inline constexpr std::string_view kKilledEnd =
    R"({"event":{"end":{"exitCode":-1,"status":"signal: killed","error":"signal: killed"}}})";

}  // namespace alcove::agent::testing
