// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "api/api.h"
#include "api/key_maker.h"
#include "http/client_connection.h"
#include "http/server.h"
#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "node/testing/fake_node.h"
#include "store/testing/memory_store.h"

namespace alcove::api::testing {

namespace json = boost::json;

struct Reply {
  int status = 0;
  http::Headers headers;
  std::string text;

  json::value parsed() const {
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    EXPECT_FALSE(error) << "not JSON: " << text;
    return value;
  }
  json::object object() const {
    const json::value value = parsed();
    EXPECT_TRUE(value.is_object()) << text;
    return value.is_object() ? value.get_object() : json::object();
  }
  json::array array() const {
    const json::value value = parsed();
    EXPECT_TRUE(value.is_array()) << text;
    return value.is_array() ? value.get_array() : json::array();
  }
  std::string message() const {
    const json::object body = object();
    const json::value* text_of = body.if_contains("message");
    return text_of != nullptr && text_of->is_string() ? std::string(text_of->get_string()) : "";
  }
  // A field that is a text.
  std::string field(std::string_view name) const {
    const json::object body = object();
    const json::value* value = body.if_contains(name);
    EXPECT_TRUE(value != nullptr && value->is_string()) << name << " in " << text;
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
  }
  std::string header(std::string_view name) const {
    return std::string(headers.get(name).value_or(""));
  }
};

// The API behind a real HTTP server on a socket pair, with a fake node and a store in memory. Two
// teams, each with a key; the first one's is sent unless a test says otherwise.
class ApiTest : public ::testing::Test {
 protected:
  explicit ApiTest(BodyLimits body_limits = {})
      : api_(Dependencies{.node = node_,
                          .clock = clock_,
                          .keys = keys_,
                          .templates = templates_,
                          .readiness = readiness_,
                          .store = store_,
                          .store_pool = pool_,
                          .body_limits = body_limits}) {
    clock_.set(WallTime(std::chrono::microseconds(1'800'000'000'123'456)));
    key_ = make_key(store_, clock_, kDefaultTeam, "test").value();
    other_key_ = make_key(store_, clock_, "others", "test").value();
    EXPECT_TRUE(keys_.load());
    readiness_.set_ready();
    add_template("tpl00000000000000000", "base");
  }

  ~ApiTest() override {
    server_.stop();
    client_.reset();
    // Lets the server's side of the connection see the end.
    loop_.restart();
    loop_.run_for(std::chrono::milliseconds(10));
  }

  CatalogEntry template_entry(const std::string& id, const std::string& name) {
    CatalogEntry entry;
    entry.record.id = TemplateId(id);
    entry.record.name = name;
    entry.record.build = BuildId("11111111-2222-4333-8444-555555555555");
    entry.record.created_at = clock_.now();
    entry.record.updated_at = clock_.now();
    return entry;
  }
  void add_template(const std::string& id, const std::string& name) {
    templates_.put(template_entry(id, name));
  }

  Reply send(std::string method, std::string target, std::string body = {}) {
    return send_with(std::move(method), std::move(target), std::move(body),
                     {{"Host", "localhost"}, {"X-API-Key", key_.secret}});
  }
  Reply send_as_other(std::string method, std::string target, std::string body = {}) {
    return send_with(std::move(method), std::move(target), std::move(body),
                     {{"Host", "localhost"}, {"X-API-Key", other_key_.secret}});
  }
  Reply send_with(std::string method, std::string target, std::string body, http::Headers headers) {
    if (!client_ || !client_->reusable()) connect();
    http::RequestHead head;
    head.method = std::move(method);
    head.target = std::move(target);
    head.headers = std::move(headers);
    auto response = net::testing::run(
        loop_, http::fetch(*client_, std::move(head), std::move(body), 64ull << 20));
    EXPECT_TRUE(response) << response.error().message();
    if (!response) return {};
    return Reply{response->status, response->headers, response->body};
  }

  void connect() {
    auto [here, there] = net::testing::make_stream_pair(loop_);
    server_.serve_connection(std::move(there));
    client_.emplace(std::move(here));
  }

  // A sandbox of the first team that started `age` ago and has 300 seconds to live.
  std::shared_ptr<node::testing::FakeSandbox> add_sandbox(const std::string& id,
                                                          std::chrono::microseconds age = {}) {
    store::Sandbox record;
    record.id = SandboxId(id);
    record.team = key_.team.id;
    record.template_id = TemplateId("tpl00000000000000000");
    record.template_alias = "base";
    record.started_at = clock_.now() - age;
    record.end_at = clock_.now() + std::chrono::seconds(300);
    record.vcpu_count = 2;
    record.memory_bytes = 1024ull << 20;
    record.disk_bytes = 10ull << 30;
    return node_.add(std::move(record));
  }

  static void expect_error(const Reply& reply, int status, const std::string& message) {
    EXPECT_EQ(reply.status, status) << reply.text;
    EXPECT_EQ(reply.header("Content-Type"), "application/json");
    EXPECT_EQ(reply.object()["code"], status);
    EXPECT_EQ(reply.message(), message);
  }

  boost::asio::io_context loop_{1};
  FakeClock clock_;
  store::testing::MemoryStore store_;
  net::BlockingPool pool_{"test", /*max_threads=*/1, /*max_queued=*/100};
  NewKey key_;
  NewKey other_key_;
  KeyRing keys_{
      store_,
      pool_,
      {.min_interval = std::chrono::milliseconds(20), .max_age = std::chrono::milliseconds(5000)}};
  TemplateCatalog templates_;
  Readiness readiness_;
  node::testing::FakeNode node_{clock_};
  Api api_;
  http::Server server_{loop_, [this](http::Exchange& exchange) { return api_.handle(exchange); }};
  std::optional<http::ClientConnection> client_;
};

}  // namespace alcove::api::testing
