#include "server/api_server.h"

#include "server/api_server_parts.h"
#include "server/bootstrap.h"
#include "server/builtin_resources.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

/// Anybody may ask whether the server is ready; where its etcd is, the log tells.
Result<> state_of(const store::Store& store) {
  if (store.health().ok()) return success();
  return Error::unavailable("the store takes no writes; the log says why");
}

// Of a look at what a node uses.
constexpr Duration kMeasureTimeout = std::chrono::seconds(10);
constexpr std::size_t kMostMeasured = std::size_t{8} << 20;

}  // namespace

ApiServer::ApiServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ApiServer::~ApiServer() { close(); }

Result<std::unique_ptr<ApiServer>> ApiServer::open(runtime::Runtime& runtime, store::Store& store,
                                                   Options options) {
  DIBS_CHECK(check_whole(store));
  auto parts = std::make_unique<Parts>(runtime, store, std::move(options));
  Parts& p = *parts;
  DIBS_CHECK(store.sync());
  DIBS_TRY(auto builtin, builtin_resources(p.options));
  if (!builtin.empty()) {
    auto gates = p.metrics.gauge("kubernetes_feature_enabled",
                                 "Feature gates of this server, 1 for those that are on.",
                                 {"name", "stage"});
    for (const auto& gate : builtin.front()->features->all())
      gates.with({gate.name, gate.stage}).set(gate.on ? 1 : 0);
  }
  if (!p.options.webhooks) p.options.webhooks = make_webhook_transport(runtime);
  if (!p.options.extensions) {
    p.options.extensions = make_extension_transport(p.options.proxy_client_certificate_pem,
                                                    p.options.proxy_client_key_pem);
  }
  p.conversions = std::make_unique<Conversions>(
      runtime, p.metrics, p.options.webhooks,
      [&p](std::string_view name_space, std::string_view name) -> Value {
        const auto services = p.resources.get()->find("", "v1", "services");
        if (!services) return nullptr;
        auto found = p.objects.get(*services, name_space, name);
        return found.ok() ? std::move(found).value() : Value();
      });
  p.definitions = std::make_unique<Definitions>(runtime, store, p.objects, p.resources,
                                                std::move(builtin), *p.conversions);
  p.definitions->on_end([&p](const std::string& prefix) { p.watches.end(prefix); });
  DIBS_CHECK(p.definitions->load());
  DIBS_TRY(p.auditor, Auditor::open(p.options, runtime, p.metrics));
  DIBS_TRY(p.access, Access::open(runtime, p.objects, p.resources, p.options));
  add_admission_plugins(p.admission,
                        {runtime, store, p.objects, p.resources, *p.access, p.options, p.metrics});
  DIBS_CHECK(p.admission.choose(p.options.enabled_plugins, p.options.disabled_plugins));
  DIBS_TRY(p.nodes, NodeClient::open(p.options));
  p.subresources = std::make_unique<Subresources>(p.objects, p.resources, *p.access, *p.nodes);
  p.reviews = std::make_unique<Reviews>(*p.access);
  p.routes = std::make_unique<Routes>(
      Routes::Sources{&p.options, &p.metrics, &p.health, [&p] { return p.access->jwks(); },
                      [&p] { return p.aggregator->current(); }, [&p] { return p.fairness.dump(); },
                      [&p] { return p.access->jwt_algorithms(); }});
  p.metrics.gauge_function("dibs_store_full", "1 while the disk is full: only deletions are taken.",
                           [&p] { return p.store.room().ok() ? 0.0 : 1.0; });
  p.metrics.gauge_function("apiserver_registered_watchers", "Watches that are open now.",
                           [&p] { return static_cast<double>(p.watches.count()); });
  p.metrics.gauge_function("dibs_own_requests_refused",
                           "Requests of parts of this process that were refused.",
                           [&p] { return static_cast<double>(p.access->own_refusals()); });
  DIBS_CHECK(write_bootstrap_objects(runtime, p.objects, p.resources, p.options));
  DIBS_CHECK(p.access->load());
  p.aggregator =
      std::make_unique<Aggregator>(runtime, p.objects, p.resources, p.options.extensions);
  DIBS_CHECK(p.aggregator->load());
  p.leases = std::make_unique<ServerLeases>(runtime, store, p.resources, p.options);
  DIBS_CHECK(p.leases->start());
  p.measure();
  // From here on nothing can fail: what they have posted must find them.
  p.definitions->on_change([&p] { p.aggregator->wake(); });
  p.definitions->start();
  p.aggregator->start();
  p.addresses = std::make_unique<AddressRepair>(runtime, store, p.resources, p.options);
  p.flow_control = std::make_unique<FlowControl>(runtime, store, p.resources, p.fairness);
  if (!store.expires()) p.expiry = std::make_unique<EventExpiry>(runtime, store, p.resources);
  if (!p.options.usage_folder.empty()) {
    UsageLimits limits;
    limits.all = p.options.usage_bytes;
    limits.file = std::min(limits.file, limits.all / 4);
    p.recorder = std::make_unique<UsageRecorder>(runtime, store, p.resources,
                                                 p.options.usage_folder, limits);
    p.recorder->start();
  }
  p.add_checks();
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(parts)));
}

void ApiServer::Parts::measure() {
  const auto node_of = [this](const std::string& name) -> Result<Value> {
    return objects.get(*resources.get()->find("", "v1", "nodes"), "", name);
  };
  NodeUsage::Sources sources;
  sources.nodes = [this] {
    std::vector<std::string> names;
    store::RangeQuery query;
    query.prefix = resources.get()->find("", "v1", "nodes")->storage_prefix;
    if (const auto listing = store.range(query); listing.ok()) {
      for (const auto& record : listing->records)
        names.emplace_back(record->key.substr(query.prefix.size()));
    }
    return names;
  };
  sources.fetch = [this, node_of](const std::string& name, const NodeUsage::Fetched& done) {
    const auto node = node_of(name);
    if (!node.ok()) return done(node.error());
    const auto url = nodes->url_of(*node);
    if (!url.ok()) return done(url.error());
    nodes->fetch(*url, "/metrics/resource", kMeasureTimeout, kMostMeasured, done);
  };
  if (options.metric_resolution > Duration(0))
    usage = std::make_unique<NodeUsage>(runtime, options.metric_resolution, std::move(sources));
  std::vector<Component> components = options.components;
  components.push_back({"etcd-0", "", [this] { return state_of(store); }});
  computed = std::make_unique<Computed>(objects, resources, usage.get(), std::move(components));
}

void ApiServer::Parts::add_checks() {
  // Who answers has a thread, and writes to the log by himself.
  health.add_done({"ping", "log"});
  health.add(
      "etcd",
      [this](bool ready) -> Result<> {
        DIBS_CHECK(state_of(store));
        // On a full disk the server lives, but is not ready: a restart would not help.
        return ready ? store.room() : success();
      },
      Health::Reason::told);
  health.add_readiness(
      "shutdown",
      [this](bool) -> Result<> {
        if (leaving) return Error::unavailable("process is shutting down");
        return success();
      },
      Health::Reason::told);
  // Rights, tokens and definitions are read before the first request.
  health.add_readiness("informer-sync", [](bool) { return success(); });
  // The plugins are chosen; what is stored has been read, rights first, then definitions.
  health.add_done({"poststarthook/start-apiserver-admission-initializer",
                   "poststarthook/generic-apiserver-start-informers",
                   "poststarthook/storage-readiness", "poststarthook/start-apiextensions-informers",
                   "poststarthook/start-apiextensions-controllers",
                   "poststarthook/crd-informer-synced"});
  // The first objects are written; the address is told.
  health.add_done({"poststarthook/start-system-namespaces-controller",
                   "poststarthook/start-cluster-authentication-info-controller",
                   "poststarthook/rbac/bootstrap-roles",
                   "poststarthook/scheduling/bootstrap-system-priority-classes",
                   "poststarthook/bootstrap-controller"});
  // What goes on beside requests has begun.
  health.add_done({"poststarthook/priority-and-fairness-config-consumer",
                   "poststarthook/priority-and-fairness-filter",
                   "poststarthook/start-service-ip-repair-controllers",
                   "poststarthook/start-kube-aggregator-informers",
                   "poststarthook/apiservice-status-local-available-controller",
                   "poststarthook/apiservice-status-remote-available-controller",
                   "poststarthook/apiservice-registration-controller",
                   "poststarthook/kube-apiserver-autoregistration", "autoregister-completion",
                   "poststarthook/apiservice-openapi-controller"});
}

calls::Handler ApiServer::handler() {
  return [this](Request request, std::unique_ptr<calls::Exchange> exchange) {
    handle(std::move(request), std::move(exchange));
  };
}

metrics::Registry& ApiServer::metrics() { return parts_->metrics; }
std::shared_ptr<json::Pool> ApiServer::trees() const { return parts_->trees; }

void ApiServer::retire() {
  if (parts_->leaving.exchange(true)) return;
  parts_->leases->stop();
}

void ApiServer::close() {
  if (parts_->closed.exchange(true)) return;
  parts_->leases->stop();
  parts_->watches.close();
  if (parts_->usage) parts_->usage->stop();
  if (parts_->recorder) parts_->recorder->stop();
  parts_->nodes->close();
  if (parts_->expiry) parts_->expiry->stop();
  if (parts_->addresses) parts_->addresses->stop();
  if (parts_->flow_control) parts_->flow_control->stop();
  parts_->fairness.stop();
  parts_->definitions->stop();
  parts_->aggregator->stop();
  parts_->access->stop();
}

void ApiServer::configure(const auth::AuthenticationConfiguration& configuration) {
  parts_->access->configure(configuration);
}

Result<> ApiServer::set_trust(const std::string& client_ca_pem,
                              const std::string& front_proxy_ca_pem) {
  Options now = parts_->options;
  now.client_ca_pem = client_ca_pem;
  now.front_proxies.ca_pem = front_proxy_ca_pem;
  return write_trust(parts_->runtime, parts_->objects, parts_->resources, now);
}

Result<> ApiServer::set_node_client(const std::string& certificate_pem,
                                    const std::string& key_pem) {
  return parts_->nodes->set_certificate(certificate_pem, key_pem);
}

void ApiServer::set_front_proxy(std::string certificate_pem, std::string key_pem) {
  parts_->options.extensions->set_certificate(std::move(certificate_pem), std::move(key_pem));
}

}  // namespace dibs::server
