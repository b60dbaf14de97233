// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::templates {

// What alcove-step, pid 1 of a build jail, tells the engine over one TCP connection: frames of
// one byte type, four bytes length (little-endian) and that many bytes. The jail's content is not
// trusted, so neither is the stream.
enum class StepFrame : char {
  kBegin = 'b',   // a step begins: its number as 4 bytes
  kOutput = 'o',  // bytes of its stdout and stderr
  kEnd = 'e',     // the step's exit status as 4 bytes; 128 + signal if it was killed
  kError = 'f',   // alcove-step itself failed: text
  kDone = 'd',    // all steps ended with status 0
};

inline constexpr size_t kStepHeaderSize = 5;
inline constexpr size_t kMaxStepPayload = 64 << 10;

std::string encode_step_frame(StepFrame type, std::string_view payload);
std::string encode_number(uint32_t number);
std::optional<uint32_t> decode_number(std::string_view payload);

// Cuts the received bytes into frames.
class StepFrameReader {
 public:
  struct Frame {
    StepFrame type;
    std::string payload;
  };

  void append(std::string_view data) { buffer_.append(data); }
  // Nothing if more bytes are needed; an error for anything that is no frame.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
};

}  // namespace alcove::templates
