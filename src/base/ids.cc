// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/ids.h"

#include <sys/random.h>

#include <cstdlib>
#include <vector>

#include "base/hex.h"

namespace alcove {
namespace {

constexpr std::string_view kAlphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789";

void fill_random(unsigned char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = getrandom(data + done, size - done, 0);
    // Without randomness no id and no token is safe; getrandom fails only on a broken kernel.
    if (n < 0 && errno != EINTR) std::abort();
    if (n > 0) done += static_cast<size_t>(n);
  }
}

bool is_alphanumeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kAlphanumeric) == std::string_view::npos;
}

}  // namespace

std::string random_alphanumeric(size_t length) {
  std::string out;
  out.reserve(length);
  while (out.size() < length) {
    unsigned char bytes[64];
    fill_random(bytes, sizeof bytes);
    for (const unsigned char byte : bytes) {
      // 252 = 7 * 36: larger bytes would favour the first letters.
      if (byte < 252 && out.size() < length) out += kAlphanumeric[byte % 36];
    }
  }
  return out;
}

std::string random_hex(size_t length) {
  std::vector<unsigned char> bytes(length);
  fill_random(bytes.data(), bytes.size());
  return to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

SandboxId make_sandbox_id() { return SandboxId("i" + random_alphanumeric(20)); }
TemplateId make_template_id() { return TemplateId(random_alphanumeric(20)); }

std::string make_uuid() {
  unsigned char b[16];
  fill_random(b, sizeof b);
  b[6] = static_cast<unsigned char>((b[6] & 0x0F) | 0x40);
  b[8] = static_cast<unsigned char>((b[8] & 0x3F) | 0x80);
  std::string hex = to_hex({reinterpret_cast<const char*>(b), sizeof b});
  for (const size_t at : {8, 13, 18, 23}) hex.insert(at, "-");
  return hex;
}

Result<SandboxId> parse_sandbox_id(std::string_view text) {
  const size_t dash = text.find('-');
  const std::string_view id = text.substr(0, dash);
  // A DNS label holds 63 characters and our own ids 21: longer ones cannot exist.
  if (!is_alphanumeric(id) || id.size() > 63 ||
      (dash != std::string_view::npos && !is_alphanumeric(text.substr(dash + 1)))) {
    return fail(Code::kInvalidArgument, "Invalid sandbox ID");
  }
  return SandboxId(std::string(id));
}

}  // namespace alcove
