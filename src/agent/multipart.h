// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::agent {

// Takes a multipart/form-data body apart as it arrives. Memory is bounded by the largest feed plus
// the limit on a part's head.
class MultipartParser {
 public:
  explicit MultipartParser(std::string_view boundary);

  struct Part {
    std::string name;
    std::optional<std::string> file_name;
  };
  enum class Kind {
    kNeedMore,  // feed() more, or feed_end()
    kPart,      // a part begins
    kData,      // bytes of the part
    kPartEnd,
    kEnd,  // the closing delimiter was seen; what follows is ignored
  };
  struct Event {
    Kind kind = Kind::kNeedMore;
    Part part;
    // Valid until the next call.
    std::string_view data;
  };

  void feed(std::string_view bytes);
  // Nothing more comes: an unfinished form is an error from now on.
  void feed_end() { ended_ = true; }
  // kInvalidArgument for a broken form.
  Result<Event> next();

 private:
  enum class State { kPreamble, kDelimiter, kHead, kData, kDone };

  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }
  Result<Event> need_more() const;
  Result<Event> next_delimiter();
  Result<Event> next_head();
  Result<Event> next_data();

  std::string delimiter_;  // "\r\n--" + boundary
  // Starts with a line end, so that a delimiter at the very beginning looks like all others.
  std::string buffer_ = "\r\n";
  size_t position_ = 0;
  State state_ = State::kPreamble;
  bool in_part_ = false;
  bool at_start_ = false;  // of a part's data
  bool ended_ = false;
};

}  // namespace alcove::agent
