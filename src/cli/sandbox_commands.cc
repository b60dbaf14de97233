// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/sandbox_commands.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/printable.h"
#include "cli/server.h"
#include "cli/views.h"
#include "http/url.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

json::object json_map(const std::map<std::string, std::string>& pairs) {
  json::object out;
  for (const auto& [key, value] : pairs) out.emplace(key, value);
  return out;
}

Task<Result<int>> create(Server& server, const CreateOptions& options) {
  json::object body{{"templateID", options.template_name},
                    {"timeout", options.timeout.count()},
                    {"metadata", json_map(options.metadata)},
                    {"envVars", json_map(options.env_vars)}};
  if (options.no_internet) body["allow_internet_access"] = false;
  const auto reply = co_await server.call("POST", "/v2/sandboxes", std::move(body));
  if (!reply && reply.error().code() == Code::kNotFound) {
    co_return fail(Code::kNotFound,
                   cat(reply.error().message(), "; `alcove template ls` lists those there are"));
  }
  if (!reply) co_return fail(reply.error());
  if (options.format == Format::kJson) {
    ALCOVE_CO_TRY(print_json(reply->body));
  } else if (const json::object* sandbox = reply->body.if_object()) {
    ALCOVE_CO_TRY(print(text_field(*sandbox, "sandboxID") + "\n"));
  }
  co_return kSuccess;
}

// The filter is encoded three times on its way: as a pair, as the value of a query, as a target.
std::string metadata_query(const std::map<std::string, std::string>& pairs) {
  std::string filter;
  for (const auto& [key, value] : pairs) {
    filter +=
        cat(filter.empty() ? "" : "&", http::percent_encode(key), "=", http::percent_encode(value));
  }
  return http::percent_encode(http::percent_encode(filter));
}

// All pages.
Task<Result<json::array>> fetch_list(Server& server, const ListOptions& options) {
  std::string query = "/v2/sandboxes?limit=100";
  if (!options.metadata.empty()) query += cat("&metadata=", metadata_query(options.metadata));
  if (!options.template_name.empty()) {
    query += cat("&template=", http::percent_encode(options.template_name));
  }
  json::array all;
  std::string token;
  do {
    std::string target = query;
    if (!token.empty()) target += cat("&nextToken=", http::percent_encode(token));
    ALCOVE_CO_TRY_ASSIGN(const ApiReply page, co_await server.call("GET", std::move(target)));
    if (const json::array* entries = page.body.if_array()) {
      all.insert(all.end(), entries->begin(), entries->end());
    }
    token = page.headers.get("X-Next-Token").value_or("");
  } while (!token.empty());
  co_return all;
}

std::vector<std::string> ids_of(const json::array& sandboxes) {
  std::vector<std::string> ids;
  for (const json::value& entry : sandboxes) {
    if (const json::object* sandbox = entry.if_object()) {
      ids.push_back(text_field(*sandbox, "sandboxID"));
    }
  }
  return ids;
}

Task<Result<int>> list(Server& server, const ListOptions& options) {
  ALCOVE_CO_TRY_ASSIGN(const json::array sandboxes, co_await fetch_list(server, options));
  if (options.format == Format::kJson) {
    ALCOVE_CO_TRY(print_json(sandboxes));
  } else if (options.quiet) {
    for (const std::string& id : ids_of(sandboxes)) ALCOVE_CO_TRY(print(printable(id) + "\n"));
  } else {
    ALCOVE_CO_TRY(print(show_sandboxes(sandboxes, SystemClock().now())));
  }
  co_return kSuccess;
}

Task<Result<int>> info(Server& server, std::string id, Format format) {
  ALCOVE_CO_TRY_ASSIGN(const ApiReply reply, co_await server.call_sandbox("GET", id, ""));
  if (format == Format::kJson) {
    ALCOVE_CO_TRY(print_json(reply.body));
  } else if (const json::object* sandbox = reply.body.if_object()) {
    ALCOVE_CO_TRY(print(show_sandbox(*sandbox, SystemClock().now())));
  }
  co_return kSuccess;
}

Task<Result<int>> kill(Server& server, const KillOptions& options) {
  std::vector<std::string> ids = options.ids;
  if (options.all) {
    ALCOVE_CO_TRY_ASSIGN(const json::array sandboxes, co_await fetch_list(server, {}));
    ids = ids_of(sandboxes);
  }
  int code = kSuccess;
  for (const std::string& id : ids) {
    const auto killed = co_await server.call_sandbox("DELETE", id, "");
    if (killed) {
      ALCOVE_CO_TRY(print(printable(id) + "\n"));
      continue;
    }
    // One that ended by itself meanwhile is as dead as --all wants it.
    if (options.all && killed.error().code() == Code::kNotFound) continue;
    if (killed.error().code() != Code::kNotFound) co_return fail(killed.error());
    std::fprintf(stderr, "alcove: %s\n", killed.error().message().c_str());
    code = kFailure;
  }
  co_return code;
}

Task<Result<int>> templates(Server& server, Format format) {
  ALCOVE_CO_TRY_ASSIGN(const ApiReply reply, co_await server.call("GET", "/templates"));
  if (format == Format::kJson) {
    ALCOVE_CO_TRY(print_json(reply.body));
  } else if (const json::array* list = reply.body.if_array()) {
    ALCOVE_CO_TRY(print(show_templates(*list, SystemClock().now())));
  }
  co_return kSuccess;
}

}  // namespace

Result<int> create_sandbox(const ClientFlags& flags, const CreateOptions& options) {
  return with_server(flags, [&](Server& server) { return create(server, options); });
}

Result<int> list_sandboxes(const ClientFlags& flags, const ListOptions& options) {
  return with_server(flags, [&](Server& server) { return list(server, options); });
}

Result<int> show_sandbox_info(const ClientFlags& flags, const std::string& id, Format format) {
  return with_server(flags, [&](Server& server) { return info(server, id, format); });
}

Result<int> kill_sandboxes(const ClientFlags& flags, const KillOptions& options) {
  return with_server(flags, [&](Server& server) { return kill(server, options); });
}

Result<int> list_templates(const ClientFlags& flags, Format format) {
  return with_server(flags, [&](Server& server) { return templates(server, format); });
}

}  // namespace alcove::cli
