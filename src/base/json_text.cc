// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/json_text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>

namespace alcove {
namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

#if defined(__SSE2__)
// A bit for each of the 16 bytes that is not plain. Part of every x86-64, so there is nothing to
// find out at run time. The comparisons are signed: what is not ASCII is below a blank.
unsigned find_special(const char* bytes) {
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  const __m128i printable = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(0x1F)),
                                          _mm_cmplt_epi8(block, _mm_set1_epi8(0x7F)));
  const __m128i syntax = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                      _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
  const int plain = _mm_movemask_epi8(_mm_andnot_si128(syntax, printable));
  return ~static_cast<unsigned>(plain) & 0xFFFF;
}
#endif

}  // namespace

size_t plain_json_prefix(std::string_view text) {
  size_t at = 0;
#if defined(__SSE2__)
  for (; text.size() - at >= sizeof(__m128i); at += sizeof(__m128i)) {
    const unsigned special = find_special(text.data() + at);
    if (special != 0) return at + static_cast<size_t>(std::countr_zero(special));
  }
#endif
  while (at < text.size() && is_plain(text[at])) ++at;
  return at;
}

}  // namespace alcove
