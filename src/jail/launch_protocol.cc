// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/launch_protocol.h"

#include <cstring>

#include "base/strings.h"

namespace alcove::jail {
namespace {

class Writer {
 public:
  explicit Writer(size_t kind) { number(kind); }
  void number(uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads zeros and empty texts after the first mistake; ok() tells.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values;
    for (uint64_t count = number(); count > 0 && ok_; --count) values.push_back(text());
    return values;
  }
  bool ok() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void write_body(Writer& out, const TemplateNamespaceRequest& request) { out.number(request.block); }

void write_body(Writer& out, const PairsRequest& request) {
  out.number(request.ranges.size());
  for (const network::IdRange& range : request.ranges) {
    out.number(range.block);
    out.number(range.index);
  }
  out.number(request.rule_sets.size());
  for (const network::RuleSet& rules : request.rule_sets) {
    out.text(rules.batch);
    out.number(rules.asks_first ? 1 : 0);
  }
}

void write_body(Writer& out, const BootRequest& request) {
  out.number(request.range.block);
  out.number(request.range.index);
  out.text(request.hostname);
  out.texts(request.layers);
  out.text(request.upper_dir);
  out.text(request.work_dir);
  out.text(request.agent_path);
  out.texts(request.agent_args);
  out.number(request.agent_port);
  out.number(request.cpus);
  out.number(request.memory_bytes);
  out.text(request.cgroup);
  out.number(request.has_cgroup2 ? 1 : 0);
}

void write_body(Writer&, const Done&) {}
void write_body(Writer& out, const ProcessStarted& started) {
  out.number(static_cast<uint64_t>(started.pid));
}
void write_body(Writer& out, const StepFailed& failure) {
  out.text(failure.step);
  out.text(failure.detail);
  out.number(static_cast<uint64_t>(failure.error_number));
}

network::IdRange read_range(Reader& in) {
  network::IdRange range;
  range.block = static_cast<uint32_t>(in.number());
  range.index = static_cast<uint32_t>(in.number());
  return range;
}

BootRequest read_boot(Reader& in) {
  BootRequest request;
  request.range = read_range(in);
  request.hostname = in.text();
  request.layers = in.texts();
  request.upper_dir = in.text();
  request.work_dir = in.text();
  request.agent_path = in.text();
  request.agent_args = in.texts();
  request.agent_port = static_cast<uint16_t>(in.number());
  request.cpus = static_cast<uint32_t>(in.number());
  request.memory_bytes = in.number();
  request.cgroup = in.text();
  request.has_cgroup2 = in.number() != 0;
  return request;
}

PairsRequest read_pairs(Reader& in) {
  PairsRequest request;
  for (uint64_t count = in.number(); count > 0 && request.ranges.size() <= kMaxPairsPerRequest;
       --count) {
    request.ranges.push_back(read_range(in));
  }
  for (uint64_t count = in.number(); count > 0 && request.rule_sets.size() <= kMaxRuleSets;
       --count) {
    network::RuleSet rules;
    rules.batch = in.text();
    rules.asks_first = in.number() != 0;
    request.rule_sets.push_back(std::move(rules));
  }
  return request;
}

template <typename Variant>
std::string encode_variant(const Variant& value) {
  Writer out(value.index());
  std::visit([&](const auto& body) { write_body(out, body); }, value);
  return out.take();
}

}  // namespace

std::string encode(const Request& request) { return encode_variant(request); }
std::string encode(const Answer& answer) { return encode_variant(answer); }

Result<Request> decode_request(std::string_view bytes) {
  Reader in(bytes);
  Request request;
  switch (in.number()) {
    case 0:
      request = TemplateNamespaceRequest{static_cast<uint32_t>(in.number())};
      break;
    case 1:
      request = read_pairs(in);
      break;
    case 2:
      request = read_boot(in);
      break;
    default:
      return fail(Code::kInvalidArgument, "unknown request");
  }
  if (!in.ok()) return fail(Code::kInvalidArgument, "malformed request");
  return request;
}

Result<Answer> decode_answer(std::string_view bytes) {
  Reader in(bytes);
  Answer answer;
  switch (in.number()) {
    case 0:
      answer = Done{};
      break;
    case 1:
      answer = ProcessStarted{static_cast<pid_t>(in.number())};
      break;
    case 2: {
      StepFailed failure;
      failure.step = in.text();
      failure.detail = in.text();
      failure.error_number = static_cast<int>(in.number());
      answer = std::move(failure);
      break;
    }
    default:
      return fail(Code::kInternal, "unknown answer");
  }
  if (!in.ok()) return fail(Code::kInternal, "malformed answer");
  return answer;
}

Error to_error(const StepFailed& failure) {
  const std::string what =
      failure.detail.empty() ? failure.step : cat(failure.step, " (", failure.detail, ")");
  return Error::from_errno(failure.error_number, what);
}

}  // namespace alcove::jail
