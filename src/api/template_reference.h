// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::api {

// How a caller names a template: `[namespace/]name[:tag]`, where name may also be a template id.
struct TemplateReference {
  // Empty = none given.
  std::string name_space;
  std::string name;
  std::optional<std::string> tag;

  // Without the tag.
  std::string full_name() const { return name_space.empty() ? name : name_space + "/" + name; }
};

// Blanks around it are dropped and letters lowered; kInvalidArgument for anything that cannot be a
// reference.
Result<TemplateReference> parse_template_reference(std::string_view text);

}  // namespace alcove::api
