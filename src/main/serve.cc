// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/serve.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/api.h"
#include "base/log.h"
#include "base/strings.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "image/upper_pool.h"
#include "jail/jail_driver.h"
#include "main/ca_bundle.h"
#include "main/client_settings.h"
#include "main/data_dir.h"
#include "main/listen_address.h"
#include "main/request_count.h"
#include "main/template_preparer.h"
#include "main/tls_domain.h"
#include "net/blocking_pool.h"
#include "net/event_loops.h"
#include "net/listener.h"
#include "net/tls_stream.h"
#include "network/ip_address.h"
#include "node/local_node.h"
#include "node/meter.h"
#include "relay/relay_client.h"
#include "store/store.h"

namespace alcove {
namespace {

namespace fs = std::filesystem;
namespace asio = boost::asio;

// Descriptors that are not client connections: databases, pools, sandboxes (3 each).
constexpr size_t kReservedDescriptors = 8000;
// The last part of all descriptors is for what the server does itself: connections into sandboxes
// end before it, those of clients in the middle of it.
constexpr size_t kOwnPart = 8;
// How long an orderly end waits for requests to the API.
constexpr std::chrono::seconds kLastRequests{10};

// The programs that come with `alcove` lie beside it.
Result<std::string> helper_program(const char* name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = self.parent_path() / name;
  if (error || !fs::exists(path, error)) {
    return fail(Code::kNotFound, cat("the program ", path.string(),
                                     " is missing: build or install "
                                     "alcove again"));
  }
  return path.string();
}

size_t raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

Result<std::string> token_seed(store::Store& store) {
  ALCOVE_TRY_ASSIGN(auto known, store.find_setting("token.seed"));
  if (known) return *known;
  std::string seed = random_hex(32);
  ALCOVE_TRY(store.put_setting("token.seed", seed));
  return seed;
}

// What both `serve` and `end-all` need: the state on disk and the sandboxes that may run.
struct Foundation {
  explicit Foundation(DataDir dir)
      : data_dir(std::move(dir)),
        agents(data_dir.agents()),
        loops(std::max(1u, std::thread::hardware_concurrency())),
        kernel_pool(std::in_place, "kernel", loops.size(), /*max_queued=*/10000),
        store_pool(std::in_place, "store", /*max_threads=*/2, /*max_queued=*/10000) {}

  ~Foundation() {
    loops.stop();
    if (node) node->stop();
    // Jobs refer to the node: they end before it does.
    kernel_pool.reset();
    store_pool.reset();
  }

  struct Options {
    std::string layers_dir;
    uint64_t pool_size = 0;
    std::vector<std::string> resolvers;
  };

  Result<void> open(const Options& options) {
    ALCOVE_TRY_ASSIGN(store, store::open_sqlite_store(data_dir.database()));
    ALCOVE_TRY_ASSIGN(uppers, image::UpperPool::open({.data_dir = data_dir.path(),
                                                      .pool_size_bytes = options.pool_size}));
    jail::JailDriver::Options jail;
    ALCOVE_TRY_ASSIGN(jail.launcher_path, helper_program("alcove-jail"));
    jail.data_dir = data_dir.path();
    if (!options.layers_dir.empty()) {
      std::error_code error;
      fs::create_directories(options.layers_dir, error);
      if (error) return fail_errno(error.value(), cat("make ", options.layers_dir));
      jail.extra_dirs.push_back(options.layers_dir);
    }
    ALCOVE_TRY_ASSIGN(const std::string relay_program, helper_program("alcove-relay"));
    ALCOVE_TRY_ASSIGN(relay, relay::RelayClient::start({.program = relay_program,
                                                        .data_dir = data_dir.path(),
                                                        .resolvers = options.resolvers}));
    jail.relay = relay;
    ALCOVE_TRY_ASSIGN(driver, jail::JailDriver::create(std::move(jail)));
    ALCOVE_TRY_ASSIGN(const std::string agent, helper_program("alcove-agent"));
    ALCOVE_TRY_ASSIGN(const std::string interpreter, helper_program("alcove-interpreter"));
    node::LocalNode::Programs programs;
    ALCOVE_TRY_ASSIGN(programs.agent, agents.add(agent));
    ALCOVE_TRY_ASSIGN(programs.interpreter, agents.add(interpreter));
    ALCOVE_TRY_ASSIGN(std::string seed, token_seed(*store));
    node = std::make_unique<node::LocalNode>(
        node::LocalNode::Dependencies{.loop = loops.loop(0),
                                      .driver = *driver,
                                      .uppers = *uppers,
                                      .store = *store,
                                      .kernel_pool = *kernel_pool,
                                      .store_pool = *store_pool,
                                      .clock = clock,
                                      .agents = agents,
                                      .tokens = node::TokenMaker(std::move(seed))},
        std::move(programs));
    return {};
  }

  DataDir data_dir;
  SystemClock clock;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<image::UpperPool> uppers;
  std::shared_ptr<relay::RelayClient> relay;
  std::unique_ptr<jail::JailDriver> driver;
  node::AgentStore agents;
  net::EventLoops loops;
  std::optional<net::BlockingPool> kernel_pool;
  std::optional<net::BlockingPool> store_pool;
  std::unique_ptr<node::LocalNode> node;
};

// The front of one event loop: every request is routed on its own, to the API or to a sandbox.
class Front {
 public:
  Front(asio::io_context& loop, node::Node& node, api::Api& api, RequestCount& api_requests,
        gateway::RoutingOptions routing, const gateway::GatewayOptions& gateway_options,
        const http::ServerOptions& server_options)
      : routing_(std::move(routing)),
        api_(api),
        api_requests_(api_requests),
        gateway_(loop, node, gateway_options),
        server_(
            loop, [this](http::Exchange& exchange) { return handle(exchange); }, server_options) {}

  Result<void> serve(UniqueFd listener) { return server_.serve(std::move(listener)); }
  void stop() { server_.stop(); }

 private:
  Task<void> handle(http::Exchange& exchange) {
    gateway::Route route = gateway::route(exchange.request(), routing_);
    if (std::holds_alternative<gateway::ToApi>(route)) return handle_api(exchange);
    return gateway_.handle(exchange, std::move(route));
  }

  Task<void> handle_api(http::Exchange& exchange) {
    const RequestCount::Mark mark(api_requests_);
    co_await api_.handle(exchange);
  }

  const gateway::RoutingOptions routing_;
  api::Api& api_;
  RequestCount& api_requests_;
  gateway::Gateway gateway_;
  http::Server server_;
};

// Blocks until somebody asks the server to end. The signals are blocked in every thread.
void wait_for_end() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  int received = 0;
  sigwait(&signals, &received);
}

void block_end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Result<void> serve(const ServeOptions& options) {
  // Before the first thread, which inherits the mask.
  block_end_signals();
  const size_t descriptors = raise_descriptor_limit();
  std::vector<ListenAddress> addresses;
  for (const std::string& text : options.listen) {
    ALCOVE_TRY_ASSIGN(ListenAddress address, parse_listen_address(text));
    addresses.push_back(std::move(address));
  }
  for (const std::string& text : options.resolvers) {
    if (!network::IpAddress::parse(text)) {
      return fail(Code::kInvalidArgument, cat("--dns ", text, ": expected an IP address"));
    }
  }
  ALCOVE_TRY_ASSIGN(const Domain domain, parse_domain(options.domain, addresses.front().port));
  ALCOVE_TRY_ASSIGN(templates::RecipeBook recipes, templates::RecipeBook::load(options.templates));

  ALCOVE_TRY_ASSIGN(DataDir data_dir, DataDir::open(options.data_dir));
  Foundation base(std::move(data_dir));
  ALCOVE_TRY(base.open({.layers_dir = options.layers_dir,
                        .pool_size = options.pool_size_bytes,
                        .resolvers = options.resolvers}));
  const api::Settings settings{.domain = domain.authority()};
  // Without it, repeats of such creates are told that nobody knows.
  if (auto settled = api::settle_interrupted_creates(*base.store, settings); !settled) {
    log_error(cat("settle creates that were cut short: ", settled.error().message()));
  }
  ALCOVE_TRY(base.node->adopt_existing());

  api::KeyRing keys(*base.store, *base.store_pool);
  api::TemplateCatalog catalog;
  api::Readiness readiness;
  std::atomic<bool> stopping = false;
  ALCOVE_TRY_ASSIGN(const std::string step_program, helper_program("alcove-step"));
  ALCOVE_TRY_ASSIGN(const auto tls, TlsDomain::open({.domain = domain,
                                                     .certificate = options.tls_certificate,
                                                     .key = options.tls_key,
                                                     .folder = base.data_dir.tls()}));
  std::string ca_bundle;
  const bool own_authority = !tls->authority_file().empty();
  if (options.build_ca || own_authority) {
    ALCOVE_TRY_ASSIGN(ca_bundle,
                      copy_ca_bundle(base.data_dir.ca_bundle(), base.data_dir.trust_bundle(),
                                     own_authority ? CaUse::kClientsToo : CaUse::kBuildsOnly));
  }
  if (own_authority) {
    ALCOVE_TRY(write_trust_bundle(base.data_dir.trust_bundle(), ca_bundle, tls->authority_file()));
  }
  if (!options.build_ca) ca_bundle.clear();
  ALCOVE_TRY_ASSIGN(
      templates::TemplateEngine engine,
      templates::TemplateEngine::open(
          {.data_dir = options.layers_dir.empty() ? base.data_dir.path() : options.layers_dir,
           .driver = base.driver.get(),
           .step_program = step_program,
           .ca_bundle = ca_bundle,
           .recipes = recipes,
           .canceled = &stopping}));
  TemplatePreparer preparer(
      {.store = *base.store,
       .catalog = catalog,
       .readiness = readiness,
       .driver = *base.driver,
       .clock = base.clock,
       .stopping = stopping},
      std::move(engine), std::move(recipes),
      options.slim ? TemplatePreparer::Replacements::kNo : TemplatePreparer::Replacements::kYes);
  ALCOVE_TRY(preparer.load_known());

  api::Api api({.node = *base.node,
                .clock = base.clock,
                .keys = keys,
                .templates = catalog,
                .readiness = readiness,
                .store = *base.store,
                .store_pool = *base.store_pool,
                .settings = settings});
  gateway::GatewayOptions gateway_options;
  gateway_options.clock = &base.clock;
  gateway_options.descriptor_limit = static_cast<int>(descriptors - descriptors / kOwnPart);
  gateway_options.file_urls = std::make_shared<gateway::FileUrlFinder>(*base.node);
  http::ServerOptions server_options;
  server_options.max_connections =
      (descriptors > 2 * kReservedDescriptors ? descriptors - kReservedDescriptors
                                              : descriptors / 2) /
      base.loops.size();
  server_options.descriptor_limit = static_cast<int>(descriptors - descriptors / kOwnPart / 2);
  RequestCount api_requests;
  std::vector<std::unique_ptr<Front>> fronts;
  for (size_t i = 0; i < base.loops.size(); ++i) {
    server_options.make_stream = [&slot = tls->identity(),
                                  handshakes = std::make_shared<net::TlsHandshakes>()](
                                     const asio::any_io_executor& executor, UniqueFd fd) {
      return std::make_unique<net::TlsStream>(executor, std::move(fd), slot.current(), handshakes);
    };
    fronts.push_back(std::make_unique<Front>(base.loops.loop(i), *base.node, api, api_requests,
                                             gateway::RoutingOptions{.domain = domain.name},
                                             gateway_options, server_options));
    for (const ListenAddress& address : addresses) {
      auto listener = net::make_listener(address.address, address.port, net::ReusePort::kYes);
      if (!listener) {
        return fail(std::move(listener).error().context(
            cat("listen on ", address.address, " port ", address.port)));
      }
      ALCOVE_TRY(fronts.back()->serve(std::move(*listener)));
    }
  }

  node::Meter meter([&base] { return base.node->running(); }, *base.uppers, base.clock);
  ALCOVE_TRY(write_client_settings(
      *base.store, {.env_file = base.data_dir.env_file(),
                    .plain_env_file = base.data_dir.plain_env_file(),
                    .domain = domain.authority(),
                    .origin = origin_of(addresses.front()),
                    .authority = tls->authority_file(),
                    .trust_bundle = own_authority ? base.data_dir.trust_bundle() : ""}));
  ALCOVE_TRY(keys.load());
  ALCOVE_TRY(write_file_atomically(base.data_dir.pid_file(), cat(getpid(), "\n"), 0644));
  base.loops.start();
  meter.start();
  log_info(cat("serving on ", origin_of(addresses.front()), " and https://api.", domain.authority(),
               ", data in ", base.data_dir.path(), ", disk pool: ", base.uppers->kind()));

  std::thread preparing([&] { preparer.prepare_all(); });
  wait_for_end();
  log_info("stopping; sandboxes go on");
  for (size_t i = 0; i < fronts.size(); ++i) {
    asio::post(base.loops.loop(i), [front = fronts[i].get()] { front->stop(); });
  }
  stopping = true;
  meter.stop();
  preparing.join();
  std::this_thread::sleep_for(http::Server::kLastChance);
  // A create that is cut short would leave a sandbox that nobody knows of until the next start.
  if (!api_requests.wait_for_none(kLastRequests)) log_warn("some requests to the API are cut off");
  base.loops.stop();
  fs::remove(base.data_dir.pid_file());
  return {};
}

Result<void> end_all(const std::string& path) {
  block_end_signals();
  ALCOVE_TRY_ASSIGN(DataDir data_dir, DataDir::open(path));
  // No server ever ran here: nothing to end, and no reason to make a pool.
  if (!fs::exists(data_dir.database())) return image::unmount_pool(path);
  std::shared_ptr<relay::RelayClient> relay;
  {
    Foundation base(std::move(data_dir));
    ALCOVE_TRY(base.open({}));
    ALCOVE_TRY(base.node->adopt_existing());
    relay = base.relay;
    base.node->end_all();
  }
  // After the sandboxes, whose ends it is told.
  ALCOVE_TRY(relay->stop());
  return image::unmount_pool(path);
}

}  // namespace alcove
