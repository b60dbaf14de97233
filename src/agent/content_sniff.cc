// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/content_sniff.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/strings.h"

namespace alcove::agent {
namespace {

using namespace std::string_view_literals;

constexpr size_t kMostBytes = 512;
constexpr std::string_view kHtml = "text/html; charset=utf-8";

// A file that begins with one of these, blanks left out, and then a blank or ">".
constexpr std::array kTags = {"<!DOCTYPE HTML"sv,
                              "<HTML"sv,
                              "<HEAD"sv,
                              "<SCRIPT"sv,
                              "<IFRAME"sv,
                              "<H1"sv,
                              "<DIV"sv,
                              "<FONT"sv,
                              "<TABLE"sv,
                              "<A"sv,
                              "<STYLE"sv,
                              "<TITLE"sv,
                              "<B"sv,
                              "<BODY"sv,
                              "<BR"sv,
                              "<P"sv};

// `bytes` at the beginning and `more` at `offset`.
struct Signature {
  std::string_view type;
  std::string_view bytes;
  size_t offset = 0;
  std::string_view more = {};
};
constexpr std::array kSignatures = {
    Signature{"application/pdf", "%PDF-"},
    Signature{"application/postscript", "%!PS-Adobe-"},
    Signature{"text/plain; charset=utf-16be", "\xfe\xff"},
    Signature{"text/plain; charset=utf-16le", "\xff\xfe"},
    Signature{"text/plain; charset=utf-8", "\xef\xbb\xbf"},
    Signature{"image/x-icon", "\0\0\1\0"sv},
    Signature{"image/x-icon", "\0\0\2\0"sv},
    Signature{"image/bmp", "BM"},
    Signature{"image/gif", "GIF87a"},
    Signature{"image/gif", "GIF89a"},
    Signature{"image/webp", "RIFF", 8, "WEBPVP"},
    Signature{"image/png", "\x89PNG\r\n\x1a\n"},
    Signature{"image/jpeg", "\xff\xd8\xff"},
    Signature{"audio/basic", ".snd"},
    Signature{"audio/aiff", "FORM", 8, "AIFF"},
    Signature{"audio/mpeg", "ID3"},
    Signature{"application/ogg", "OggS\0"sv},
    Signature{"audio/midi", "MThd\0\0\0\6"sv},
    Signature{"video/avi", "RIFF", 8, "AVI "},
    Signature{"audio/wave", "RIFF", 8, "WAVE"},
    Signature{"video/webm", "\x1a\x45\xdf\xa3"},
    Signature{"application/vnd.ms-fontobject", "", 34, "LP"},
    Signature{"font/ttf", "\0\1\0\0"sv},
    Signature{"font/otf", "OTTO"},
    Signature{"font/collection", "ttcf"},
    Signature{"font/woff", "wOFF"},
    Signature{"font/woff2", "wOF2"},
    Signature{"application/x-gzip", "\x1f\x8b\x08"},
    Signature{"application/zip", "PK\3\4"},
    Signature{"application/x-rar-compressed", "Rar!\x1a\7\0"sv},
    Signature{"application/x-rar-compressed", "Rar!\x1a\7\1\0"sv},
    Signature{"application/wasm", "\0asm"sv},
};

bool is_blank(char c) { return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '; }

bool begins_with_tag(std::string_view text) {
  if (text.starts_with("<!--")) return true;
  return std::any_of(kTags.begin(), kTags.end(), [&](std::string_view tag) {
    if (text.size() <= tag.size() || !equal_ignoring_case(text.substr(0, tag.size()), tag)) {
      return false;
    }
    return text[tag.size()] == ' ' || text[tag.size()] == '>';
  });
}

// A first box "ftyp" with a brand of MP4, and the box is as long as it says.
bool is_mp4(std::string_view bytes) {
  if (bytes.size() < 12 || bytes.substr(4, 4) != "ftyp") return false;
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(bytes[i]);
  if (size % 4 != 0 || bytes.size() < size) return false;
  for (size_t at = 8; at + 3 <= size; at += 4) {
    if (at == 12) continue;  // the version
    if (bytes.substr(at, 3) == "mp4") return true;
  }
  return false;
}

bool is_text_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 || is_blank(c) || byte == 0x1b;  // escape: colours of a terminal
}

}  // namespace

std::string_view sniff_type(std::string_view beginning) {
  const std::string_view bytes = beginning.substr(0, kMostBytes);
  const auto first = std::find_if_not(bytes.begin(), bytes.end(), is_blank);
  const std::string_view text = bytes.substr(static_cast<size_t>(first - bytes.begin()));
  if (begins_with_tag(text)) return kHtml;
  if (text.starts_with("<?xml")) return "text/xml; charset=utf-8";
  for (const Signature& signature : kSignatures) {
    if (bytes.starts_with(signature.bytes) && bytes.size() >= signature.offset &&
        bytes.substr(signature.offset).starts_with(signature.more)) {
      return signature.type;
    }
  }
  if (is_mp4(bytes)) return "video/mp4";
  const bool is_text = std::all_of(bytes.begin(), bytes.end(), is_text_byte);
  return is_text ? "text/plain; charset=utf-8" : "application/octet-stream";
}

}  // namespace alcove::agent
