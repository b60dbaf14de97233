// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "http/headers.h"

namespace alcove::agent {

// A file's metadata: extended attributes "user.e2b.<key>" with the prefix taken off.
using Metadata = std::map<std::string, std::string>;

// From the fields "X-Metadata-<key>: <value>" of an upload. Keys are in lower case, the first of
// equal keys counts. kInvalidArgument for characters outside of printable ASCII and for more than
// fits in a file's attributes.
Result<Metadata> parse_metadata_headers(const http::Headers& headers);

// Follows links. What cannot be read or is not UTF-8 is left out.
Metadata read_metadata(const std::string& path);

// Makes the file's metadata equal to `wanted`. A file system without attributes is no error.
Result<void> replace_metadata(int fd, const Metadata& wanted);

}  // namespace alcove::agent
