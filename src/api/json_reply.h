// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <boost/json/fwd.hpp>

#include "http/message.h"

namespace alcove::api {

http::Response json_response(int status, const boost::json::value& body);
// 204: success that needs no words.
http::Response no_content();

}  // namespace alcove::api
