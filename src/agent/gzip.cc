// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/gzip.h"

#include <zlib.h>

#include <array>

#include "base/assert.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip format only
constexpr size_t kChunk = 32 * 1024;
constexpr size_t kTurn = 256 * 1024;

}  // namespace

struct GunzipBody::State {
  z_stream stream{};
  std::array<char, kChunk> input;
  bool input_ended = false;
  bool member_ended = true;
  bool any_member = false;
  // Output since other tasks had their turn.
  size_t since_turn = 0;
};

GunzipBody::GunzipBody(http::BodyReader& inner) : inner_(inner), state_(std::make_unique<State>()) {
  ALCOVE_ASSERT(::inflateInit2(&state_->stream, kGzipWindow) == Z_OK);
}

GunzipBody::~GunzipBody() { ::inflateEnd(&state_->stream); }

Task<Result<size_t>> GunzipBody::read(std::span<char> buffer) {
  z_stream& stream = state_->stream;
  if (buffer.empty()) co_return size_t{0};
  for (;;) {
    if (stream.avail_in == 0 && !state_->input_ended) {
      ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await inner_.read(state_->input));
      if (count == 0) state_->input_ended = true;
      stream.next_in = reinterpret_cast<Bytef*>(state_->input.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    if (stream.avail_in == 0 && state_->member_ended) {
      if (!state_->any_member) co_return fail(Code::kInvalidArgument, "gzip: empty body");
      co_return size_t{0};
    }
    if (state_->member_ended) {
      ::inflateReset(&stream);
      state_->member_ended = false;
      state_->any_member = true;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    const size_t produced = buffer.size() - stream.avail_out;
    if (status == Z_STREAM_END) {
      state_->member_ended = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      co_return fail(Code::kInvalidArgument, "gzip: the body is not valid gzip data");
    } else if (produced == 0 && state_->input_ended) {
      co_return fail(Code::kInvalidArgument, "gzip: the body ends early");
    }
    if (produced > 0) {
      // A few bytes of input can be megabytes of output, for which nothing waits if nobody wants
      // it.
      state_->since_turn += produced;
      if (state_->since_turn >= kTurn) {
        state_->since_turn = 0;
        co_await net::yield();
      }
      co_return produced;
    }
  }
}

struct GzipWriter::State {
  z_stream stream{};
};

GzipWriter::GzipWriter() : state_(std::make_unique<State>()) {
  ALCOVE_ASSERT(::deflateInit2(&state_->stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow,
                               /*memLevel=*/8, Z_DEFAULT_STRATEGY) == Z_OK);
}

GzipWriter::~GzipWriter() { ::deflateEnd(&state_->stream); }

std::string GzipWriter::add(std::string_view data) { return run(data, Z_NO_FLUSH); }

std::string GzipWriter::finish() { return run({}, Z_FINISH); }

std::string GzipWriter::run(std::string_view data, int flush) {
  z_stream& stream = state_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string out;
  for (;;) {
    const size_t before = out.size();
    out.resize(before + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = kChunk;
    const int status = ::deflate(&stream, flush);
    out.resize(out.size() - stream.avail_out);
    if (status == Z_STREAM_END || stream.avail_out > 0) return out;
  }
}

}  // namespace alcove::agent
