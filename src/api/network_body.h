// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "api/errors.h"

namespace alcove::api {

// The `network` object of a create.
struct NetworkBody {
  bool allow_public_traffic = true;
  // The known fields as they were given, for showing them again.
  std::string json;
};

// Only allowPublicTraffic, maskRequestHost and httpsPorts are built so far. Another field is
// refused by its name if it asks for something; an empty list or map asks for nothing.
ApiResult<NetworkBody> parse_network(const boost::json::object& network);

}  // namespace alcove::api
