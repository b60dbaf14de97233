// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/body.h"

namespace alcove::agent {

// A body that arrives compressed with gzip (one member or several), read as what it holds. Memory
// is bounded whatever the compression ratio.
class GunzipBody final : public http::BodyReader {
 public:
  // `inner` must outlive it.
  explicit GunzipBody(http::BodyReader& inner);
  ~GunzipBody() override;
  GunzipBody(const GunzipBody&) = delete;
  GunzipBody& operator=(const GunzipBody&) = delete;

  // kInvalidArgument for anything but gzip, and for a body that ends early.
  Task<Result<size_t>> read(std::span<char> buffer) override;
  std::optional<uint64_t> length() const override { return {}; }

 private:
  struct State;
  http::BodyReader& inner_;
  std::unique_ptr<State> state_;
};

// Compresses what is handed in piece by piece.
class GzipWriter {
 public:
  GzipWriter();
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  // What has come out so far; may be empty.
  std::string add(std::string_view data);
  // The rest. Nothing may be added afterwards.
  std::string finish();

 private:
  std::string run(std::string_view data, int flush);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace alcove::agent
