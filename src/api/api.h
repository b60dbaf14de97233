// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "api/key_ring.h"
#include "api/readiness.h"
#include "api/request_body.h"
#include "api/services.h"
#include "api/settings.h"
#include "api/template_catalog.h"
#include "base/clock.h"
#include "http/exchange.h"
#include "net/blocking_pool.h"
#include "net/task.h"
#include "node/node.h"
#include "store/store.h"

namespace alcove::api {

// What the API is wired to; all of it outlives the Api.
struct Dependencies {
  node::Node& node;
  const Clock& clock;
  KeyRing& keys;
  TemplateCatalog& templates;
  const Readiness& readiness;
  store::Store& store;
  net::BlockingPool& store_pool;
  Settings settings = {};
  BodyLimits body_limits = {};
};

// The REST API. One object serves all event loops: its handlers share nothing but thread-safe
// services.
class Api {
 public:
  explicit Api(Dependencies dependencies);

  // Answers one request that is the API's. Every answer it gives is its own shape of JSON (or
  // /health's text), failures of its handlers included.
  Task<void> handle(http::Exchange& exchange);

 private:
  Task<http::Response> answer(http::Exchange& exchange);

  Services services_;
  KeyRing& keys_;
  const BodyLimits body_limits_;
};

}  // namespace alcove::api
