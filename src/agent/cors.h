// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"
#include "net/task.h"

namespace alcove::agent {

// What browsers need to talk to the agent from another origin (protocol/envd.md 1.7).

// The answer to a preflight request; nothing if it is an ordinary request.
std::optional<http::Response> preflight_response(const http::RequestHead& request);

// An exchange whose answers carry the CORS fields, whoever makes them.
class CorsExchange final : public http::Exchange {
 public:
  explicit CorsExchange(http::Exchange& inner) : inner_(inner) {}

  const http::RequestHead& request() const override { return inner_.request(); }
  http::BodyReader& body() override { return inner_.body(); }
  void cancel_read() override { inner_.cancel_read(); }
  void limit_body_time(std::chrono::steady_clock::duration idle,
                       std::chrono::steady_clock::duration total) override {
    inner_.limit_body_time(idle, total);
  }
  std::string peer_address() const override { return inner_.peer_address(); }
  Task<Result<void>> respond(http::Response response) override;
  Task<Result<void>> start(http::ResponseHead head, http::BodyLength length) override;
  Task<Result<void>> start_with(http::ResponseHead head, http::BodyLength length,
                                std::string_view first) override;
  Task<Result<void>> write(std::string_view data) override { return inner_.write(data); }
  Task<Result<void>> finish(std::string_view last) override { return inner_.finish(last); }
  Task<Result<void>> send_file(int fd, uint64_t offset, uint64_t count) override {
    return inner_.send_file(fd, offset, count);
  }
  void abort() override { inner_.abort(); }
  void close_after() override { inner_.close_after(); }
  bool started() const override { return inner_.started(); }
  Task<void> wait_disconnect() override { return inner_.wait_disconnect(); }
  bool client_hung_up() const override { return inner_.client_hung_up(); }
  net::Stream& raw_stream() override { return inner_.raw_stream(); }
  std::string take_read_ahead() override { return inner_.take_read_ahead(); }

 private:
  void add_fields(http::Headers& headers) const;

  http::Exchange& inner_;
};

}  // namespace alcove::agent
