// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"

namespace alcove::http::testing {

using net::testing::make_stream_pair;
using net::testing::run;
using net::testing::run_until;

}  // namespace alcove::http::testing
