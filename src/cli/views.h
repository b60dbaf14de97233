// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/clock.h"

namespace alcove::cli {

// The API's objects as people read them. What does not have the expected shape is shown as "-":
// a table is no place to fail. All text is made printable.

std::string show_sandboxes(const boost::json::array& sandboxes, WallTime now);
std::string show_sandbox(const boost::json::object& sandbox, WallTime now);
std::string show_templates(const boost::json::array& templates, WallTime now);

// One line each, so that they can follow one another as they come.
std::string metrics_header();
std::string show_metric(const boost::json::object& sample);
std::string show_log_entry(const boost::json::object& entry);

}  // namespace alcove::cli
