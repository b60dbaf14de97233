// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string_view>

namespace alcove::agent {

// The media type of a file without a telling name, by its first bytes (at most 512 count): the
// signatures of the WHATWG's "MIME Sniffing" standard, else text or "application/octet-stream".
std::string_view sniff_type(std::string_view beginning);

}  // namespace alcove::agent
