// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <boost/json/object.hpp>

#include "api/settings.h"
#include "node/node.h"

namespace alcove::api {

// How a sandbox is shown. Optional fields are left out, never null: the Python clients fail on
// null, and on the absence of any of the others.

// Answer of create and connect ("Sandbox").
boost::json::object show_handle(const store::Sandbox& record, const Settings& settings);
// Element of a list ("ListedSandbox").
boost::json::object show_listed(const node::LiveSandbox& sandbox, const Settings& settings);
// Answer of get ("SandboxDetail").
boost::json::object show_detail(const node::LiveSandbox& sandbox, const Settings& settings);

}  // namespace alcove::api
