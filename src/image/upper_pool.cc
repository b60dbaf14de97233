// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/upper_pool.h"

#include "base/log.h"
#include "base/strings.h"
#include "image/btrfs_pool.h"
#include "image/files.h"
#include "image/plain_pool.h"

namespace alcove::image {

Result<std::unique_ptr<UpperPool>> UpperPool::open(const Options& options) {
  ALCOVE_TRY(make_directories(options.data_dir, 0755));
  std::string reason = "sandboxes of an earlier start live in plain directories";
  if (!PlainPool::is_in_use(options.data_dir)) {
    auto pool = BtrfsPool::open(options);
    if (pool) return std::unique_ptr<UpperPool>(std::move(*pool));
    if (pool.error().code() != Code::kUnimplemented) return fail(std::move(pool).error());
    reason = pool.error().message();
  }
  log_warn(cat("sandboxes have no disk limit: ", reason));
  ALCOVE_TRY_ASSIGN(auto plain, PlainPool::open(options.data_dir));
  return std::unique_ptr<UpperPool>(std::move(plain));
}

}  // namespace alcove::image
