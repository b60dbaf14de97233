// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/launch_protocol.h"

#include "base/byte_codec.h"
#include "base/strings.h"

namespace alcove::jail {
namespace {

void write_body(ByteWriter& out, const TemplateNamespaceRequest& request) {
  out.number(request.block);
}

void write_body(ByteWriter& out, const PairsRequest& request) {
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

void write_body(ByteWriter& out, const BootRequest& request) {
  out.number(request.range.block);
  out.number(request.range.index);
  out.text(request.hostname);
  out.texts(request.layers);
  out.text(request.upper_dir);
  out.text(request.work_dir);
  out.text(request.agent_path);
  out.texts(request.agent_args);
  out.text(request.ca_bundle);
  out.text(request.interpreter_path);
  out.number(request.agent_port);
  out.number(request.cpus);
  out.number(request.memory_bytes);
  out.text(request.cgroup);
  out.number(request.has_cgroup2 ? 1 : 0);
}

void write_body(ByteWriter& out, const Done& done) { out.number(done.rule_set); }
void write_body(ByteWriter& out, const ProcessStarted& started) {
  out.number(static_cast<uint64_t>(started.pid));
}
void write_body(ByteWriter& out, const StepFailed& failure) {
  out.text(failure.step);
  out.text(failure.detail);
  out.number(static_cast<uint64_t>(failure.error_number));
}

network::IdRange read_range(ByteReader& in) {
  network::IdRange range;
  range.block = static_cast<uint32_t>(in.number());
  range.index = static_cast<uint32_t>(in.number());
  return range;
}

BootRequest read_boot(ByteReader& in) {
  BootRequest request;
  request.range = read_range(in);
  request.hostname = in.text();
  request.layers = in.texts();
  request.upper_dir = in.text();
  request.work_dir = in.text();
  request.agent_path = in.text();
  request.agent_args = in.texts();
  request.ca_bundle = in.text();
  request.interpreter_path = in.text();
  request.agent_port = static_cast<uint16_t>(in.number());
  request.cpus = static_cast<uint32_t>(in.number());
  request.memory_bytes = in.number();
  request.cgroup = in.text();
  request.has_cgroup2 = in.number() != 0;
  return request;
}

PairsRequest read_pairs(ByteReader& in) {
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
  ByteWriter out;
  out.number(value.index());
  std::visit([&](const auto& body) { write_body(out, body); }, value);
  return out.take();
}

}  // namespace

std::string encode(const Request& request) { return encode_variant(request); }
std::string encode(const Answer& answer) { return encode_variant(answer); }

Result<Request> decode_request(std::string_view bytes) {
  ByteReader in(bytes);
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
  ByteReader in(bytes);
  Answer answer;
  switch (in.number()) {
    case 0:
      answer = Done{in.number()};
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
