// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_message.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

constexpr std::string_view kDelimiter = "<IDS|MSG>";
constexpr std::string_view kProtocolVersion = "5.3";
constexpr size_t kJsonFrames = 4;
// Documents of notebooks (plotly, vega) nest deeper than Boost's 32.
constexpr size_t kMostJsonDepth = 256;

// An empty key means that messages are not signed.
std::string sign(std::span<const std::string_view> frames, std::string_view key) {
  return key.empty() ? std::string() : to_hex(hmac_sha256(key, frames));
}

Result<json::object> parse_object(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = kMostJsonDepth;
  json::error_code error;
  json::value value = is_valid_utf8(text) ? json::parse(text, error, {}, options)
                                          : json::parse(to_valid_utf8(text), error, {}, options);
  if (error) {
    return fail(Code::kInvalidArgument,
                cat("the ", what, " of a Jupyter message: ", error.message()));
  }
  if (!value.is_object()) {
    return fail(Code::kInvalidArgument, cat("the ", what, " of a Jupyter message is no object"));
  }
  return std::move(value.get_object());
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

ZmtpMessage encode_jupyter_message(const JupyterMessage& message, std::string_view key) {
  const json::object header{{"msg_id", message.id},       {"msg_type", message.type},
                            {"session", message.session}, {"username", "alcove"},
                            {"date", message.date},       {"version", kProtocolVersion}};
  std::array<std::string, kJsonFrames> frames = {json::serialize(header), "{}", "{}",
                                                 json::serialize(message.content)};
  if (!message.parent_id.empty()) {
    frames[1] = json::serialize(json::object{{"msg_id", message.parent_id}});
  }
  const std::array<std::string_view, kJsonFrames> views = {frames[0], frames[1], frames[2],
                                                           frames[3]};
  ZmtpMessage out = {std::string(kDelimiter), sign(views, key)};
  for (std::string& frame : frames) out.push_back(std::move(frame));
  return out;
}

Result<JupyterMessage> decode_jupyter_message(const ZmtpMessage& frames, std::string_view key) {
  const auto delimiter = std::find(frames.begin(), frames.end(), kDelimiter);
  if (std::distance(delimiter, frames.end()) < static_cast<ptrdiff_t>(2 + kJsonFrames)) {
    return fail(Code::kInvalidArgument, "a Jupyter message with too few frames");
  }
  const auto first = delimiter + 2;
  const std::array<std::string_view, kJsonFrames> views = {first[0], first[1], first[2], first[3]};
  if (!key.empty() && !equal_constant_time(sign(views, key), delimiter[1])) {
    return fail(Code::kUnauthenticated, "a Jupyter message with a wrong signature");
  }
  ALCOVE_TRY_ASSIGN(const json::object header, parse_object(first[0], "header"));
  // Some kernels write an empty one as [] or null.
  const auto parent = parse_object(first[1], "parent header");
  ALCOVE_TRY_ASSIGN(json::object content, parse_object(first[3], "content"));
  return JupyterMessage{.type = text_of(header, "msg_type"),
                        .id = text_of(header, "msg_id"),
                        .session = text_of(header, "session"),
                        .parent_id = parent ? text_of(*parent, "msg_id") : "",
                        .date = text_of(header, "date"),
                        .content = std::move(content)};
}

}  // namespace alcove::interpreter
