// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/control_messages.h"

#include "base/byte_codec.h"

namespace alcove::relay {
namespace {

void write_body(ByteWriter& out, const Hello& hello) {
  out.number(hello.version);
  out.texts(hello.resolvers);
}
void write_body(ByteWriter& out, const Open& open) {
  out.text(open.id);
  out.text(to_text(open.policy));
}
void write_body(ByteWriter& out, const Close& close) { out.text(close.id); }
void write_body(ByteWriter& out, const List& list) { out.text(list.after); }
void write_body(ByteWriter&, const Stop&) {}
void write_body(ByteWriter&, const Done&) {}
void write_body(ByteWriter& out, const Failed& failed) { out.text(failed.message); }
void write_body(ByteWriter& out, const Full& full) { out.text(full.message); }
void write_body(ByteWriter& out, const Welcome& welcome) { out.number(welcome.version); }
void write_body(ByteWriter& out, const Listing& listing) { out.texts(listing.ids); }

template <typename Variant>
std::string encode_variant(const Variant& value) {
  ByteWriter out;
  out.number(value.index());
  std::visit([&](const auto& body) { write_body(out, body); }, value);
  return out.take();
}

Result<Request> read_open(ByteReader& in) {
  Open open;
  open.id = in.text();
  const auto policy = network::parse_egress_policy(in.text());
  // A policy that this relay does not know must not become a wider one.
  if (!policy) return fail(Code::kInvalidArgument, "unknown egress policy");
  open.policy = *policy;
  return open;
}

Hello read_hello(ByteReader& in) {
  Hello hello;
  hello.version = in.number();
  hello.resolvers = in.texts();
  return hello;
}

}  // namespace

std::string encode(const Request& request) { return encode_variant(request); }
std::string encode(const Answer& answer) { return encode_variant(answer); }

Result<Request> decode_request(std::string_view bytes) {
  ByteReader in(bytes);
  Request request;
  switch (in.number()) {
    case 0:
      request = read_hello(in);
      break;
    case 1: {
      ALCOVE_TRY_ASSIGN(request, read_open(in));
      break;
    }
    case 2:
      request = Close{in.text()};
      break;
    case 3:
      request = List{in.text()};
      break;
    case 4:
      request = Stop{};
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
      answer = Done{};
      break;
    case 1:
      answer = Failed{in.text()};
      break;
    case 2:
      answer = Welcome{in.number()};
      break;
    case 3:
      answer = Listing{in.texts()};
      break;
    case 4:
      answer = Full{in.text()};
      break;
    default:
      return fail(Code::kInternal, "unknown answer of the relay");
  }
  if (!in.ok()) return fail(Code::kInternal, "malformed answer of the relay");
  return answer;
}

}  // namespace alcove::relay
