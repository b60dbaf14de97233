// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/multipart.h"

#include <string.h>

#include "agent/media_type.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr size_t kMaxHead = 16 * 1024;

size_t find(std::string_view text, std::string_view wanted) {
  const void* at = ::memmem(text.data(), text.size(), wanted.data(), wanted.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

Result<MultipartParser::Part> parse_head(std::string_view head) {
  MultipartParser::Part part;
  while (!head.empty()) {
    const size_t end = find(head, "\r\n");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return fail(Code::kInvalidArgument, "multipart: broken header line");
    }
    if (!equal_ignoring_case(trim(line.substr(0, colon)), "content-disposition")) continue;
    auto disposition = parse_media_type(line.substr(colon + 1));
    if (!disposition || disposition->value != "form-data") continue;
    if (const auto name = disposition->parameters.find("name");
        name != disposition->parameters.end()) {
      part.name = name->second;
    }
    if (const auto name = disposition->parameters.find("filename");
        name != disposition->parameters.end()) {
      part.file_name = name->second;
    }
  }
  return part;
}

}  // namespace

MultipartParser::MultipartParser(std::string_view boundary) : delimiter_(cat("\r\n--", boundary)) {}

void MultipartParser::feed(std::string_view bytes) {
  buffer_.erase(0, position_);
  position_ = 0;
  buffer_.append(bytes);
}

Result<MultipartParser::Event> MultipartParser::need_more() const {
  if (ended_) return fail(Code::kInvalidArgument, "multipart: unexpected end of the form");
  return Event{};
}

Result<MultipartParser::Event> MultipartParser::next() {
  switch (state_) {
    case State::kPreamble: {
      const size_t at = find(rest(), delimiter_);
      if (at == std::string_view::npos) {
        // Keep what may be the beginning of a delimiter.
        if (rest().size() >= delimiter_.size()) position_ = buffer_.size() - delimiter_.size() + 1;
        return need_more();
      }
      position_ += at + delimiter_.size();
      state_ = State::kDelimiter;
      return next_delimiter();
    }
    case State::kDelimiter:
      return next_delimiter();
    case State::kHead:
      return next_head();
    case State::kData:
      return next_data();
    case State::kDone:
      position_ = buffer_.size();
      return Event{Kind::kEnd, {}, {}};
  }
  return fail(Code::kInternal, "multipart: bad state");
}

// After the delimiter: "--" closes the form, a line end opens a part.
Result<MultipartParser::Event> MultipartParser::next_delimiter() {
  if (in_part_) {
    in_part_ = false;
    return Event{Kind::kPartEnd, {}, {}};
  }
  const std::string_view text = rest();
  if (text.starts_with("--")) {
    state_ = State::kDone;
    return Event{Kind::kEnd, {}, {}};
  }
  size_t blanks = 0;
  while (blanks < text.size() && (text[blanks] == ' ' || text[blanks] == '\t')) ++blanks;
  if (blanks > kMaxHead) return fail(Code::kInvalidArgument, "multipart: broken delimiter");
  const std::string_view line_end = text.substr(blanks, 2);
  if (line_end == "\r\n") {
    // The line end stays: an empty head is then "\r\n\r\n", as any other head's end.
    position_ += blanks;
    state_ = State::kHead;
    return next_head();
  }
  if (line_end.empty() || line_end == "\r" || (blanks == 0 && text == "-")) return need_more();
  return fail(Code::kInvalidArgument, "multipart: broken delimiter");
}

Result<MultipartParser::Event> MultipartParser::next_head() {
  const std::string_view text = rest();
  const size_t end = find(text, "\r\n\r\n");
  if (end == std::string_view::npos ? text.size() > kMaxHead : end > kMaxHead) {
    return fail(Code::kInvalidArgument, "multipart: head of a part is too long");
  }
  if (end == std::string_view::npos) return need_more();
  Event event{Kind::kPart, {}, {}};
  if (end > 0) {
    ALCOVE_TRY_ASSIGN(event.part, parse_head(text.substr(2, end - 2)));
  }
  // The head's last line end is left before the data: a part without any may have its delimiter
  // right there.
  position_ += end + 2;
  state_ = State::kData;
  at_start_ = true;
  in_part_ = true;
  return event;
}

Result<MultipartParser::Event> MultipartParser::next_data() {
  if (at_start_) {
    const std::string_view text = rest();
    if (text.starts_with(delimiter_)) {
      position_ += delimiter_.size();
      state_ = State::kDelimiter;
      return next_delimiter();
    }
    if (text.size() < delimiter_.size() && std::string_view(delimiter_).starts_with(text)) {
      return need_more();
    }
    position_ += 2;
    at_start_ = false;
  }
  const std::string_view text = rest();
  const size_t end = find(text, delimiter_);
  if (end == 0) {
    position_ += delimiter_.size();
    state_ = State::kDelimiter;
    return next_delimiter();
  }
  size_t length = end;
  if (end == std::string_view::npos) {
    // The last bytes may be the beginning of a delimiter.
    if (text.size() < delimiter_.size()) return need_more();
    length = text.size() - delimiter_.size() + 1;
  }
  position_ += length;
  return Event{Kind::kData, {}, text.substr(0, length)};
}

}  // namespace alcove::agent
