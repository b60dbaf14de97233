// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/template_reference.h"

#include "base/strings.h"

namespace alcove::api {
namespace {

constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_";

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kNameCharacters) == std::string_view::npos;
}

bool is_tag(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c != '.' && kNameCharacters.find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace

Result<TemplateReference> parse_template_reference(std::string_view text) {
  const std::string lowered = to_lower(trim(text));
  std::string_view rest = lowered;
  TemplateReference reference;
  bool valid = true;
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    reference.name_space = rest.substr(0, slash);
    valid = is_name(reference.name_space);
    rest.remove_prefix(slash + 1);
  }
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    reference.tag = std::string(rest.substr(colon + 1));
    valid = valid && is_tag(*reference.tag);
    rest = rest.substr(0, colon);
  }
  reference.name = rest;
  if (!valid || !is_name(reference.name)) {
    return fail(Code::kInvalidArgument,
                cat("invalid template reference '", text,
                    "': it has the form [namespace/]name[:tag], of letters, digits, '-' and '_'"));
  }
  return reference;
}

}  // namespace alcove::api
