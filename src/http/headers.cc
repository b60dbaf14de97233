// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/headers.h"

#include <algorithm>

#include "base/strings.h"

namespace alcove::http {

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equal_ignoring_case(field.first, name)) return field.second;
  }
  return std::nullopt;
}

size_t Headers::count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(), [&](const Field& field) {
    return equal_ignoring_case(field.first, name);
  }));
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!equal_ignoring_case(field.first, name)) continue;
    for (const std::string_view part : split(field.second, ',')) {
      if (equal_ignoring_case(trim(part), token)) return true;
    }
  }
  return false;
}

void Headers::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string_view name, std::string value) {
  const auto same = [&](const Field& field) { return equal_ignoring_case(field.first, name); };
  const auto first = std::find_if(fields_.begin(), fields_.end(), same);
  if (first == fields_.end()) {
    add(std::string(name), std::move(value));
    return;
  }
  first->second = std::move(value);
  fields_.erase(std::remove_if(first + 1, fields_.end(), same), fields_.end());
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_,
                [&](const Field& field) { return equal_ignoring_case(field.first, name); });
}

}  // namespace alcove::http
