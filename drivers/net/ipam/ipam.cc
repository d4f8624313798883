#include "drivers/net/ipam/ipam.h"

#include "base/strings.h"
#include "client/informer.h"
#include "drivers/net/ipam/assignment.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr int kReleaseTries = 10;
const client::Gvr kNamespaceResource = {"", "v1", "namespaces"};
const client::Gvr kNodeResource = {"", "v1", "nodes"};

client::InformerOptions metadata_of(client::Gvr gvr) {
  client::InformerOptions options;
  options.gvr = std::move(gvr);
  options.metadata_only = true;
  return options;
}

}  // namespace

struct Ipam::State {
  State(driver::Environment environment, IpamOptions given)
      : options(std::move(given)),
        api(environment.api),
        pools(api, environment.runtime),
        reserved(api, environment.runtime),
        namespaces(api, environment.runtime, metadata_of(kNamespaceResource)),
        nodes(api, environment.runtime, metadata_of(kNodeResource)),
        owners(api),
        endpoints(api),
        ledger(api, environment.runtime, ledger_options()) {}

  LedgerOptions ledger_options() {
    LedgerOptions out;
    out.tries = options.tries;
    out.records = options.records;
    out.known = [this](const std::string& pool) { return pools.known(pool); };
    out.reserved = [this] { return reserved.addresses(); };
    return out;
  }

  void start() {
    if (!options.watch) return;
    pools.on_change(
        [this](const std::string& pool) {
          if (!pools.known(pool)) ledger.forget(pool);
        },
        {});
    pools.start();
    reserved.start();
    namespaces.start();
    nodes.start();
  }

  bool synced() const {
    if (!options.watch) return true;
    return pools.synced() && reserved.synced() && namespaces.synced() && nodes.synced();
  }

  void stop() {
    ledger.stop();
    pools.stop();
    reserved.stop();
    namespaces.stop();
    nodes.stop();
  }

  /// Null where it is not there.
  Result<Value> find(const client::Informer& known, const client::Gvr& gvr,
                     const std::string& name) {
    if (!options.watch) return find_object(api, gvr, "", name);
    return known.get(name).value_or(Value());
  }

  Result<PodJob> job_of(const Value& pod, const std::string& node) {
    PodJob job;
    job.pod = pod;
    job.name_space = client::namespace_of(pod);
    job.name = client::name_of(pod);
    job.uid = client::uid_of(pod);
    job.key = client::key_of(job.name_space, job.name);
    job.node = node;
    if (!synced()) return Error::unavailable("IP pools are not known yet");
    if (!is_alive(pod)) {
      return Error::conflict(cat("dead Pod ", job.key, ", we cannot allocate IP addresees to it"));
    }
    DIBS_TRY(job.application, owners.application(pod));
    DIBS_TRY(job.routes, route_annotation(pod));
    if (!options.watch) {
      DIBS_CHECK(pools.refresh());
      DIBS_CHECK(reserved.refresh());
    }
    job.pools = pools.snapshot();
    job.setting.pools = &job.pools->pools;
    job.setting.refused = job.pools->refused;
    job.setting.pod = pod;
    DIBS_TRY(job.setting.name_space, find(namespaces, kNamespaceResource, job.name_space));
    job.setting.node = node;
    DIBS_TRY(const Value node_object, find(nodes, kNodeResource, node));
    job.setting.node_labels = node_object["metadata"]["labels"];
    job.setting.application = job.application;
    job.setting.options = options.selection;
    return job;
  }

  Tools tools() { return {ledger, endpoints, options}; }

  /// False: to be done again.
  Result<bool> release(std::string_view name_space, std::string_view pod, std::string_view uid) {
    DIBS_TRY(const Value living, find_object(api, kPodResource, name_space, pod));
    if (client::uid_of(living) == uid && !has_ended(living)) return true;
    DIBS_TRY(const Endpoint endpoint, endpoints.read(name_space, pod));
    if (!endpoint.object.is_object() || endpoint.pod_uid != uid) return true;
    if (options.stateful_sets && endpoint.owner_kind == "StatefulSet") {
      DIBS_TRY(const Value set,
               find_object(api, kStatefulSetResource, name_space, endpoint.owner_name));
      if (keeps_addresses(pod, set)) return true;
    }
    if (!options.watch) DIBS_CHECK(pools.refresh());
    return give_up(tools(), endpoint);
  }

  const IpamOptions options;
  client::Client& api;
  PoolCatalog pools;
  ReservedCatalog reserved;
  client::Informer namespaces;
  client::Informer nodes;
  Owners owners;
  Endpoints endpoints;
  Ledger ledger;
};

Ipam::Ipam() = default;
Ipam::~Ipam() { stop(); }

Result<std::unique_ptr<Ipam>> Ipam::start(driver::Environment environment, IpamOptions options) {
  if (options.tries < 1 || options.records < 1) {
    return Error::invalid("tries and records must be positive");
  }
  std::unique_ptr<Ipam> made(new Ipam());
  made->state_ = std::make_unique<State>(std::move(environment), std::move(options));
  made->state_->start();
  return made;
}

bool Ipam::synced() const { return state_->synced(); }

void Ipam::stop() {
  if (state_ != nullptr) state_->stop();
}

Result<std::vector<Assigned>> Ipam::assign(const Value& pod, const std::string& node,
                                           const std::vector<NicAsk>& nics) {
  DIBS_TRY(const PodJob job, state_->job_of(pod, node));
  if (nics.empty()) return std::vector<Assigned>();
  const Tools tools = state_->tools();
  return Assignment(tools, job, nics).run();
}

Result<> Ipam::can_assign(const Value& pod, const std::string& node,
                          const std::vector<NicAsk>& nics) {
  DIBS_TRY(const PodJob job, state_->job_of(pod, node));
  const Tools tools = state_->tools();
  if (Assignment(tools, job, nics).check({})) return success();
  // It may have its addresses already; asked for only now, as this is asked for many nodes.
  DIBS_TRY(const Endpoint endpoint, state_->endpoints.read(job.name_space, job.name));
  return Assignment(tools, job, nics).check(endpoint);
}

Result<> Ipam::release(std::string_view name_space, std::string_view pod, std::string_view uid) {
  for (int i = 0; i < kReleaseTries; ++i) {
    DIBS_TRY(const bool done, state_->release(name_space, pod, uid));
    if (done) return success();
  }
  return Error::unavailable(cat("SpiderEndpoint ", name_space, "/", pod, ": exhaust all retries"));
}

}  // namespace dibs::drivers::net
