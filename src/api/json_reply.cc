// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/json_reply.h"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace alcove::api {

http::Response json_response(int status, const boost::json::value& body) {
  return http::Response{.status = status,
                        .headers = {{"Content-Type", "application/json"}},
                        .body = boost::json::serialize(body)};
}

http::Response no_content() { return http::Response{.status = 204, .headers = {}, .body = {}}; }

}  // namespace alcove::api
