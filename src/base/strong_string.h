// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace alcove {

// A string with a meaning of its own: a SandboxId cannot be passed where a TemplateId is wanted.
template <typename Tag>
class StrongString {
 public:
  StrongString() = default;
  explicit StrongString(std::string value) : value_(std::move(value)) {}

  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }

  friend bool operator==(const StrongString&, const StrongString&) = default;
  friend std::strong_ordering operator<=>(const StrongString& a, const StrongString& b) {
    return a.value_.compare(b.value_) <=> 0;
  }

 private:
  std::string value_;
};

}  // namespace alcove

template <typename Tag>
struct std::hash<alcove::StrongString<Tag>> {
  size_t operator()(const alcove::StrongString<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.str());
  }
};
