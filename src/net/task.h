// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <boost/asio/awaitable.hpp>

namespace alcove {

// A coroutine. It runs on the event loop (one thread) that started it and never moves to another.
// Parameters are values, or references to something that outlives the task.
template <typename T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace alcove
