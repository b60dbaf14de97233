// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string_view>

namespace alcove::gateway {

// A request target taken apart. Absolute form ("http://host/path") names its own authority, which
// then counts instead of the Host header (RFC 9112, 3.2.2).
struct Target {
  // Empty unless the target is in absolute form.
  std::string_view authority;
  // Origin form: starts with '/' or '?', is empty, or whatever else the client sent ("*").
  std::string_view path_and_query;

  std::string_view path() const { return path_and_query.substr(0, path_and_query.find('?')); }
  std::string_view query() const;
};

Target split_target(std::string_view target);

// True if the path names one of the agent's control calls (/init, /journal, /freeze, ...), which
// nobody outside may reach, in any spelling that a router could take for it: doubled slashes, dot
// segments, percent-encoding (repeated too), trailing slash, ';' parameters, backslashes, letter
// case. Errs on the side of true: the agent answers 404 to all near misses anyway.
bool is_agent_control_path(std::string_view path);

}  // namespace alcove::gateway
