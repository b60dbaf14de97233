// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/idempotency.h"

#include <algorithm>
#include <chrono>

#include "api/json_reply.h"
#include "api/sandbox_view.h"
#include "api/services.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

constexpr size_t kMaxKey = 255;
constexpr std::chrono::hours kKept{24};

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

http::Response mismatch() {
  return error_response(
      {422, "This Idempotency-Key was used with another request.", "idempotency_request_mismatch"});
}

http::Response in_progress() {
  return error_response(
      {409, "The create with this Idempotency-Key is still under way.", "idempotency_in_progress"});
}

// The answer to a create whose key is taken by `known`, which is not under way.
http::Response repeat(const store::KeyedCreate& known, const std::string& fingerprint) {
  if (known.fingerprint != fingerprint) return mismatch();
  if (!known.answer) {
    return final_error_response(
        {409,
         "The server does not know whether the create with this Idempotency-Key succeeded: list "
         "your sandboxes, then use another key.",
         "idempotency_outcome_unknown"});
  }
  return http::Response{
      .status = 201, .headers = {{"Content-Type", "application/json"}}, .body = *known.answer};
}

}  // namespace

http::Response created(const store::Sandbox& record, const Settings& settings) {
  return json_response(201, show_handle(record, settings));
}

Result<void> settle_interrupted_creates(store::Store& store, const Settings& settings) {
  ALCOVE_TRY_ASSIGN(const auto interrupted, store.list_unanswered_creates());
  if (interrupted.empty()) return {};
  ALCOVE_TRY_ASSIGN(const auto recorded, store.list_sandboxes());
  for (const store::KeyedCreate& create : interrupted) {
    if (create.sandbox.empty()) continue;
    const auto made = std::ranges::find(recorded, create.sandbox, &store::Sandbox::id);
    if (made != recorded.end()) {
      ALCOVE_TRY(store.finish_keyed_create(create.team, create.key, created(*made, settings).body));
      continue;
    }
    // One that has been and ended is not made again.
    ALCOVE_TRY_ASSIGN(const auto ended, store.find_ended_sandbox(create.sandbox));
    if (!ended) ALCOVE_TRY(store.release_keyed_create(create.team, create.key));
  }
  return {};
}

// Counts a create as under way until it is destroyed, unless another one with the key already is.
class KeyedCreates::Mark {
 public:
  Mark(KeyedCreates& creates, const Id& id, const std::string& fingerprint)
      : creates_(creates), id_(id) {
    const std::lock_guard lock(creates_.mutex_);
    const auto [at, fresh] = creates_.under_way_.emplace(id_, fingerprint);
    if (!fresh) other_ = at->second;
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() {
    if (other_) return;
    const std::lock_guard lock(creates_.mutex_);
    creates_.under_way_.erase(id_);
  }

  // The fingerprint of the create that was there before.
  const std::optional<std::string>& other() const { return other_; }

 private:
  KeyedCreates& creates_;
  const Id id_;
  std::optional<std::string> other_;
};

ApiResult<std::optional<std::string>> read_idempotency_key(const http::Headers& headers) {
  constexpr std::string_view kName = "Idempotency-Key";
  const auto key = headers.get(kName);
  if (!key) return std::nullopt;
  if (headers.count(kName) > 1 || key->empty() || key->size() > kMaxKey ||
      !std::all_of(key->begin(), key->end(), is_key_character)) {
    return refuse_invalid(
        cat(kName, " must be one value of 1 to ", kMaxKey, " characters of a-z, 0-9 and -"));
  }
  return std::string(*key);
}

std::string create_fingerprint(std::string_view route, std::string_view body) {
  return cat(route, ":", sha256_hex(body));
}

Task<http::Response> KeyedCreates::answer(TeamId team, std::string key, std::string fingerprint,
                                          std::function<Task<http::Response>(SandboxId)> create) {
  const Id id(std::move(team), std::move(key));
  const Mark mark(*this, id, fingerprint);
  if (mark.other()) co_return *mark.other() == fingerprint ? in_progress() : mismatch();

  const WallTime now = clock_.now();
  const SandboxId sandbox = make_sandbox_id();
  store::KeyedCreate record{.team = id.first,
                            .key = id.second,
                            .fingerprint = fingerprint,
                            .sandbox = sandbox,
                            .answer = std::nullopt,
                            .begun_at = now};
  const auto known = co_await pool_.run([&store = store_, record = std::move(record), now] {
    return store.begin_keyed_create(record, now - kKept);
  });
  if (!known) {
    co_return error_response(internal_error("looking up the Idempotency-Key", known.error()));
  }
  if (*known) co_return repeat(**known, fingerprint);

  http::Response response = co_await create(sandbox);
  co_await settle(id, response);
  co_return response;
}

Task<void> KeyedCreates::settle(const Id& id, const http::Response& response) {
  Result<void> settled;
  if (response.status == 201) {
    settled = co_await pool_.run([&store = store_, id, body = response.body] {
      return store.finish_keyed_create(id.first, id.second, body);
    });
  } else {
    settled = co_await pool_.run(
        [&store = store_, id] { return store.release_keyed_create(id.first, id.second); });
  }
  // The caller gets the answer all the same; a repeat will be told that the outcome is unknown.
  if (!settled) log_error(cat("keep the answer of a create: ", settled.error().message()));
}

}  // namespace alcove::api
