// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/step_protocol.h"

#include <endian.h>

#include <cstring>

namespace alcove::templates {

std::string encode_number(uint32_t number) {
  const uint32_t little = htole32(number);
  return std::string(reinterpret_cast<const char*>(&little), sizeof little);
}

std::optional<uint32_t> decode_number(std::string_view payload) {
  uint32_t little = 0;
  if (payload.size() != sizeof little) return {};
  std::memcpy(&little, payload.data(), sizeof little);
  return le32toh(little);
}

std::string encode_step_frame(StepFrame type, std::string_view payload) {
  std::string frame(1, static_cast<char>(type));
  frame += encode_number(static_cast<uint32_t>(payload.size()));
  frame += payload;
  return frame;
}

Result<std::optional<StepFrameReader::Frame>> StepFrameReader::next() {
  if (buffer_.size() < kStepHeaderSize) return std::optional<Frame>();
  const char type = buffer_[0];
  if (std::string_view("boefd").find(type) == std::string_view::npos) {
    return fail(Code::kInvalidArgument, "malformed message from the build jail");
  }
  const uint32_t size = *decode_number(std::string_view(buffer_).substr(1, 4));
  if (size > kMaxStepPayload) {
    return fail(Code::kInvalidArgument, "oversized message from the build jail");
  }
  if (buffer_.size() < kStepHeaderSize + size) return std::optional<Frame>();
  Frame frame{.type = static_cast<StepFrame>(type),
              .payload = buffer_.substr(kStepHeaderSize, size)};
  buffer_.erase(0, kStepHeaderSize + size);
  return std::optional<Frame>(std::move(frame));
}

}  // namespace alcove::templates
