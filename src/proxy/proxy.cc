#include "proxy/proxy.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/informer.h"
#include "proxy/far_backends.h"
#include "proxy/health_ports.h"
#include "proxy/ruleset.h"

namespace dibs::proxy {
namespace {

using json::Value;

const client::Gvr kServices{"", "v1", "services"};
const client::Gvr kSlices{"discovery.k8s.io", "v1", "endpointslices"};
const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kPods{"", "v1", "pods"};
const client::Gvr kCidrs{"networking.k8s.io", "v1", "servicecidrs"};
constexpr const char* kByService = "service";
constexpr const char* kZone = "topology.kubernetes.io/zone";

/// A burst of changes is one transaction.
constexpr Duration kGather = std::chrono::milliseconds(10);
constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
constexpr Duration kLongestRetry = std::chrono::seconds(30);
/// Nobody tells of a new route.
constexpr Duration kLookForRoutes = std::chrono::seconds(30);
/// A server before 1.33 has no added ranges, and one of others may not let this node read them.
constexpr Duration kRangesWait = std::chrono::seconds(5);

/// What of a pod tells whose packets are its own.
Value pod_place(const Value& pod) {
  const Value& metadata = pod["metadata"];
  return Value::object(
      {{"metadata", Value::object({{"name", metadata["name"]},
                                   {"namespace", metadata["namespace"]},
                                   {"uid", metadata["uid"]},
                                   {"resourceVersion", metadata["resourceVersion"]}})},
       {"node", pod["spec"]["nodeName"]},
       {"host", pod["spec"]["hostNetwork"]},
       {"phase", pod["status"]["phase"]},
       {"ip", pod["status"]["podIP"]}});
}

Result<TableOptions> table_options(const ProxyOptions& options) {
  TableOptions out;
  out.table = options.bridge;
  out.machine.bridge = options.bridge;
  DIBS_TRY(out.machine.pods, Ipv4Range::parse(options.pods));
  DIBS_TRY(out.machine.services, Ipv4Range::parse(options.services));
  for (const std::string& node : options.nodes) out.machine.nodes[node] = "";
  if (!options.local_dns.empty() && parse_ipv4(options.dns_address)) {
    out.dns_address = options.dns_address;
    out.local_dns = options.local_dns;
  }
  return out;
}

}  // namespace

struct Proxy::State : std::enable_shared_from_this<Proxy::State> {
  State(ProxyOptions how, TableOptions table, client::Client& client, runtime::Runtime& world,
        Applier& to)
      : options(std::move(how)),
        runtime(world),
        applier(to),
        api(client),
        machine(table.machine),
        rules(std::move(table)),
        far(client, to) {}

  const ProxyOptions options;
  runtime::Runtime& runtime;
  Applier& applier;
  client::Client& api;
  std::unique_ptr<client::Informer> services;
  std::unique_ptr<client::Informer> slices;
  std::unique_ptr<client::Informer> nodes;
  std::unique_ptr<client::Informer> cidrs;  // a server before 1.33 has none
  std::unique_ptr<client::Informer> pods;   // only where a Service asks for a sender's node
  HealthPorts health;

  mutable Mutex mutex;
  std::set<std::string> dirty DIBS_GUARDED_BY(mutex);                      // Services
  std::vector<std::pair<Value, bool>> pod_changes DIBS_GUARDED_BY(mutex);  // and whether it is gone
  std::map<std::string, std::string> zones DIBS_GUARDED_BY(mutex);
  bool zones_changed DIBS_GUARDED_BY(mutex) = false;
  bool ranges_changed DIBS_GUARDED_BY(mutex) = false;
  bool waiting DIBS_GUARDED_BY(mutex) = false;  // for the time to apply, or applying
  bool again DIBS_GUARDED_BY(mutex) = false;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  runtime::TimerId timer DIBS_GUARDED_BY(mutex) = 0;
  bool routes_again DIBS_GUARDED_BY(mutex) = false;
  runtime::TimerId routes_timer DIBS_GUARDED_BY(mutex) = 0;
  bool looking DIBS_GUARDED_BY(mutex) = false;
  bool look_again DIBS_GUARDED_BY(mutex) = false;
  runtime::TimerId far_timer DIBS_GUARDED_BY(mutex) = 0;
  CondVar idle;

  // Of whoever applies: one at a time.
  Machine machine;
  Ruleset rules;
  FarBackends far;
  std::set<std::string> partial;  // Services without backends that are far
  std::set<std::string> routes;   // to added ranges of Services
  bool ranges_read = false;
  Duration began = {};
  Duration routes_retry = kFirstRetry;
  bool whole = true;
  Duration retry = kFirstRetry;
  std::map<std::string, std::map<std::string, std::string>> pods_at;  // node, address -> uid

  // --- what changed ---

  void start() {
    began = runtime.clock.steady();
    services = follow(kServices, {});
    slices = follow(kSlices, [](const Value& slice) { return service_of(slice); });
    client::InformerOptions how;
    how.gvr = kNodes;
    if (options.reads_only_own_node && options.nodes.size() == 1) {
      how.field_selector = cat("metadata.name=", options.nodes[0]);
    }
    how.keep = [](const Value& node) { return Value::object({{"metadata", node["metadata"]}}); };
    nodes = std::make_unique<client::Informer>(api, runtime, std::move(how));
    const auto note_zone = [this](const Value& node) {
      const std::string name(client::name_of(node));
      if (std::find(options.nodes.begin(), options.nodes.end(), name) == options.nodes.end())
        return;
      MutexLock lock(mutex);
      std::string zone = node["metadata"]["labels"][kZone].str();
      if (zones[name] == zone) return;
      zones[name] = std::move(zone);
      zones_changed = true;
      schedule(kGather);
    };
    nodes->add_handler(
        {.added = [note_zone](const Value& node, bool) { note_zone(node); },
         .updated = [note_zone](const Value&, const Value& node) { note_zone(node); }});
    follow_ranges();
    services->start();
    slices->start();
    nodes->start();
    cidrs->start();
    MutexLock lock(mutex);
    schedule(kGather);
  }

  /// `name_in`: the Service that an object is of; empty: it is one.
  std::unique_ptr<client::Informer> follow(const client::Gvr& gvr,
                                           std::function<std::string(const Value&)> name_in) {
    client::InformerOptions how;
    how.gvr = gvr;
    auto out = std::make_unique<client::Informer>(api, runtime, std::move(how));
    const auto key = [name_in](const Value& object) {
      if (!name_in) return client::key_of(object);
      const std::string name = name_in(object);
      return name.empty() ? name : client::key_of(client::namespace_of(object), name);
    };
    if (name_in) {
      out->add_index(kByService,
                     [key](const Value& object) { return std::vector<std::string>{key(object)}; });
    }
    out->add_handler({.added = [this, key](const Value& object, bool) { touch(key(object)); },
                      .updated =
                          [this, key](const Value& before, const Value& after) {
                            touch(key(before));
                            touch(key(after));
                          },
                      .removed = [this, key](const Value& object) { touch(key(object)); }});
    return out;
  }

  void touch(std::string key) {
    if (key.empty()) return;
    MutexLock lock(mutex);
    dirty.insert(std::move(key));
    schedule(kGather);
  }

  void follow_ranges() {
    client::InformerOptions how;
    how.gvr = kCidrs;
    cidrs = std::make_unique<client::Informer>(api, runtime, std::move(how));
    const auto note = [this] {
      MutexLock lock(mutex);
      ranges_changed = true;
      schedule(kGather);
    };
    cidrs->add_handler({.added = [note](const Value&, bool) { note(); },
                        .updated =
                            [note](const Value& before, const Value& after) {
                              if (!(before["spec"] == after["spec"])) note();
                            },
                        .removed = [note](const Value&) { note(); }});
  }

  /// Of ServiceCIDRs; one that is going counts until it is gone, since Services may have its
  /// addresses until then.
  /// True when they have changed.
  bool take_ranges() {
    std::vector<Ipv4Range> more;
    std::set<std::string> texts;
    for (const Value& cidr : cidrs->list()) {
      for (const Value& text : cidr["spec"]["cidrs"].items()) {
        const auto range = Ipv4Range::parse(text.as_string());
        if (!range.ok() || *range == machine.services) continue;
        if (const std::string owner = owner_of(*range); !owner.empty()) {
          log::error("a range of Services is not used here: others have its addresses",
                     {{"servicecidr", client::name_of(cidr)},
                      {"range", range->text()},
                      {"others", owner}});
          continue;
        }
        if (texts.insert(range->text()).second) more.push_back(*range);
      }
    }
    std::sort(more.begin(), more.end(), [](const Ipv4Range& a, const Ipv4Range& b) {
      return std::pair(a.first, a.bits) < std::pair(b.first, b.bits);
    });
    // A process before this one may have left routes that nobody wants any more.
    const bool first = !std::exchange(ranges_read, true);
    const bool changed = more != machine.more_services;
    if (!changed && !first) return false;
    if (changed) {
      rules.set_more_services(more);
      machine.more_services = std::move(more);
      routes = std::move(texts);
      whole = true;
    }
    routes_retry = kFirstRetry;
    keep_routes();
    return changed;
  }

  std::string owner_of(const Ipv4Range& range) const {
    if (range.overlaps(machine.pods)) return cat("pods of this machine, ", machine.pods.text());
    return options.taken ? options.taken(range) : "";
  }

  void keep_routes() {
    const auto done = applier.keep_routes(machine.bridge, routes);
    if (done.ok()) return;
    log::warn("this machine itself may not reach all Services", {{"error", done.error()}});
    // By a timer of its own: Services do not wait for it.
    MutexLock lock(mutex);
    if (stopped) return;
    runtime.timers.cancel(routes_timer);
    routes_timer = runtime.timers.after(routes_retry, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      MutexLock again(self->mutex);
      self->routes_again = true;
      self->schedule(kGather);
    });
    routes_retry = std::min(routes_retry * 2, kLongestRetry);
  }

  /// Without the ranges a first table would let packets to Services leave the machine that an
  /// earlier one keeps.
  bool knows_ranges() const {
    return cidrs->synced() || runtime.clock.steady() - began > kRangesWait;
  }

  void follow_pods() {
    client::InformerOptions how;
    how.gvr = kPods;
    how.keep = pod_place;
    pods = std::make_unique<client::Informer>(api, runtime, std::move(how));
    const auto note = [this](const Value& pod, bool gone) {
      MutexLock lock(mutex);
      pod_changes.emplace_back(pod, gone);
      schedule(kGather);
    };
    pods->add_handler({.added = [note](const Value& pod, bool) { note(pod, false); },
                       .updated =
                           [note](const Value& before, const Value& after) {
                             if (before["ip"] == after["ip"] && before["phase"] == after["phase"])
                               return;
                             note(before, true);
                             note(after, false);
                           },
                       .removed = [note](const Value& pod) { note(pod, true); }});
    pods->start();
  }

  // --- applying it ---

  void schedule(Duration delay) DIBS_REQUIRES(mutex) {
    if (stopped) return;
    if (waiting) {
      again = true;
      return;
    }
    waiting = true;
    timer = runtime.timers.after(delay, [self = shared_from_this()] { self->apply(); });
  }

  void apply() {
    {
      MutexLock lock(mutex);
      if (stopped) {
        waiting = false;
        idle.notify_all();
        return;
      }
      again = false;
    }
    Duration next = kGather;
    bool retrying = false;
    if (services->synced() && slices->synced() && nodes->synced() && knows_ranges()) {
      take_changes();
      if (auto done = write(); done.ok()) {
        retry = kFirstRetry;
      } else {
        log::error("Services cannot be programmed", {{"error", done.error()}});
        next = retry;
        retry = std::min(retry * 2, kLongestRetry);
        retrying = true;
      }
    } else {
      retrying = true;  // a moment later
      next = kGather;
    }
    MutexLock lock(mutex);
    waiting = false;
    if (again || retrying) schedule(next);
    idle.notify_all();
  }

  void take_changes() {
    std::set<std::string> keys;
    std::vector<std::pair<Value, bool>> moved;
    bool all = false;
    bool moves = false;
    bool leads = false;
    {
      MutexLock lock(mutex);
      moves = std::exchange(ranges_changed, false);
      leads = std::exchange(routes_again, false);
      keys.swap(dirty);
      if (std::exchange(look_again, false)) keys.insert(partial.begin(), partial.end());
      moved.swap(pod_changes);
      all = std::exchange(zones_changed, false);
      for (const auto& [node, zone] : zones) machine.nodes[node] = zone;
    }
    if (leads) keep_routes();
    // What is outside of the cluster depends on them, for every Service.
    if (moves || (!ranges_read && cidrs->synced())) all = take_ranges() || all;
    if (all) {
      for (const Value& service : services->list()) keys.insert(client::key_of(service));
    }
    for (const std::string& key : keys) {
      const auto service = services->get(key);
      ServiceView view = service
                             ? read_service(*service, slices->by_index(kByService, key), machine)
                             : ServiceView();
      if (far.leave_out(view, machine)) {
        partial.insert(key);
      } else {
        partial.erase(key);
      }
      rules.put(key, make_piece(key, view, machine));
      health.put(key, view.external_local ? view.health_port : 0, local_backends(view, machine));
    }
    if (!partial.empty()) look_for_routes();
    for (const auto& [pod, gone] : moved) note_pod(pod, gone);
    if (rules.needs_pods() && !pods) follow_pods();
  }

  /// Looks at the partial ones again, by and by.
  void look_for_routes() {
    MutexLock lock(mutex);
    if (stopped || looking) return;
    looking = true;
    far_timer = runtime.timers.after(kLookForRoutes, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      MutexLock again(self->mutex);
      self->looking = false;
      self->look_again = true;
      self->schedule(kGather);
    });
  }

  void note_pod(const Value& pod, bool gone) {
    const std::string node = pod["node"].str();
    const std::string address = pod["ip"].str();
    if (!machine.nodes.contains(node) || !parse_ipv4(address) || pod["host"].as_bool()) return;
    const std::string_view phase = pod["phase"].as_string();
    gone = gone || phase == "Succeeded" || phase == "Failed";
    auto& there = pods_at[node];
    const auto found = there.find(address);
    if (!gone) {
      there[address] = client::uid_of(pod);
      rules.put_pod(node, address);
    } else if (found != there.end() && found->second == client::uid_of(pod)) {
      // Unless the next pod has the address already.
      there.erase(found);
      rules.remove_pod(node, address);
    }
  }

  Result<> write() {
    if (!whole && !rules.changed()) return success();
    std::string text = whole ? rules.whole() : rules.difference();
    if (!text.empty()) {
      auto done = applier.apply(text);
      if (!done.ok() && !whole) {
        log::warn("a change of Services failed, the whole is written", {{"error", done.error()}});
        text = rules.whole();
        done = applier.apply(text);
      }
      whole = !done.ok();
      if (!done.ok()) return done;
    }
    after_write();
    rules.written();
    return success();
  }

  /// What the kernel still remembers of backends that are gone.
  void after_write() {
    if (const auto done = applier.forget_udp(rules.gone_udp()); !done.ok()) {
      log::warn("flows to backends that are gone cannot be ended", {{"error", done.error()}});
    }
    std::string text;
    for (const auto& [home, gone] : rules.gone_homes()) {
      if (gone.empty()) continue;
      const auto clients = applier.homes(rules.table(), home);
      if (!clients.ok()) continue;  // the map is new
      for (const auto& [address, backend] : *clients) {
        if (gone.contains(backend)) {
          append(text, "delete element inet ", rules.table(), ' ', home, " { ", address, " }\n");
        }
      }
    }
    if (text.empty()) return;
    if (const auto done = applier.apply(text); !done.ok()) {
      log::warn("clients of backends that are gone keep them", {{"error", done.error()}});
    }
  }

  void stop() {
    {
      MutexLock lock(mutex);
      stopped = true;
      if (waiting && runtime.timers.cancel(timer)) waiting = false;
      runtime.timers.cancel(routes_timer);
      runtime.timers.cancel(far_timer);
      idle.wait(lock, [this]() DIBS_REQUIRES(mutex) { return !waiting; });
    }
    for (auto* informer : {&services, &slices, &nodes, &cidrs, &pods}) {
      if (*informer) (*informer)->stop();
    }
    health.stop();
  }
};

Proxy::Proxy(std::shared_ptr<State> state) : state_(std::move(state)) {}
Proxy::~Proxy() { stop(); }

Result<std::unique_ptr<Proxy>> Proxy::start(ProxyOptions options, client::Client& client,
                                            runtime::Runtime& runtime, Applier& applier) {
  DIBS_TRY(TableOptions table, table_options(options));
  auto state =
      std::make_shared<State>(std::move(options), std::move(table), client, runtime, applier);
  // Only where no table is there: that of a process before this one leads pods to their backends.
  const std::string frame =
      cat("create table inet ", state->rules.table(), "\n", state->rules.whole());
  if (auto made = applier.apply(frame);
      !made.ok() && made.error().message().find("File exists") == std::string::npos) {
    return made.error().within("cannot program Services on this machine");
  }
  if (auto opened = applier.open_loopback(state->machine.bridge); !opened.ok()) {
    log::warn("node ports do not answer at 127.0.0.1", {{"error", opened.error()}});
  }
  state->start();
  return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
}

void Proxy::stop() { state_->stop(); }

}  // namespace dibs::proxy
