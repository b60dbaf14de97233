// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/router.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace alcove::api {
namespace {

// The parameters if the pattern fits.
std::optional<std::vector<std::string>> fit(std::string_view pattern,
                                            const std::vector<std::string>& segments) {
  std::vector<std::string> parameters;
  size_t index = 0;
  pattern.remove_prefix(1);
  for (const std::string_view part : split(pattern, '/')) {
    if (index == segments.size()) return {};
    const std::string& segment = segments[index++];
    if (part.starts_with('{')) {
      parameters.push_back(segment);
    } else if (part != segment) {
      return {};
    }
  }
  if (index != segments.size()) return {};
  return parameters;
}

}  // namespace

Match match_route(std::span<const Route> table, std::string_view method,
                  const std::vector<std::string>& segments) {
  const std::string_view wanted = method == "HEAD" ? std::string_view("GET") : method;
  Match match;
  for (const Route& route : table) {
    auto parameters = fit(route.pattern, segments);
    if (!parameters) continue;
    if (route.method != wanted) {
      if (std::find(match.allowed.begin(), match.allowed.end(), route.method) ==
          match.allowed.end()) {
        match.allowed.push_back(route.method);
      }
      continue;
    }
    // A pattern without parameters is more exact than one with.
    if (match.route == nullptr || parameters->size() < match.parameters.size()) {
      match.route = &route;
      match.parameters = *std::move(parameters);
    }
  }
  if (match.route != nullptr) match.allowed.clear();
  return match;
}

}  // namespace alcove::api
