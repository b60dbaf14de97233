// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/services.h"

namespace alcove::api {

enum class Access {
  // No key needed.
  kOpen,
  kApiKey,
  // An API key in X-API-Key or as `Authorization: Bearer`.
  kApiKeyOrBearer,
};

struct Route {
  std::string_view method;
  // "/sandboxes/{id}/connect"
  std::string_view pattern;
  Access access = Access::kApiKey;
  RouteHandler handler = nullptr;
};

// The whole API.
std::span<const Route> routes();

struct Match {
  // Null: nothing for this method, or (allowed empty) for this path.
  const Route* route = nullptr;
  std::vector<std::string> parameters;
  // Methods that the path has, if the asked one is not among them.
  std::vector<std::string_view> allowed;
};

// `segments` are decoded; a fixed segment goes before a {parameter}. HEAD finds the route of GET.
Match match_route(std::span<const Route> table, std::string_view method,
                  const std::vector<std::string>& segments);

}  // namespace alcove::api
