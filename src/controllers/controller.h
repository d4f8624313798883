#pragma once
// The frame that all controllers share.
//
// A controller watches objects through shared informers, turns what it sees into keys, and makes
// the world right for one key at a time: a function that may be called again at any moment and
// does nothing when there is nothing to do. Retries, delays and the order of start and end live
// here, once.
//
// Nothing here has a thread, a clock or a sleep of its own: all come with the Environment, so a
// whole cluster runs in one thread under virtual time.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/discovery.h"
#include "net/x509.h"
#include "runtime/runtime.h"

namespace dibs::controllers {

using client::Gvr;
using client::WorkOutcome;
using json::Value;

/// One informer per resource, whoever needs it.
class SharedInformers {
 public:
  SharedInformers(client::Client& client, runtime::Runtime& runtime);
  ~SharedInformers();

  /// Must be called before start(): in a controller's constructor.
  client::Informer& of(const Gvr& gvr);
  /// The same with an index; the first one of a name counts.
  client::Informer& of(const Gvr& gvr, const std::string& index,
                       client::ObjectStore::Index function);

  void start();
  void stop();
  bool synced() const;

 private:
  struct Entry {
    std::unique_ptr<client::Informer> informer;
    std::vector<std::string> indexes;
  };
  Entry& entry(const Gvr& gvr);

  client::Client& client_;
  runtime::Runtime& runtime_;
  std::map<std::string, Entry> entries_;
};

/// Of the autoscaler of pods, with the defaults of Kubernetes.
struct AutoscalerOptions {
  Duration sync_period = std::chrono::seconds(15);
  /// Of what was asked for within it, before going down, the most counts.
  Duration downscale_stabilization = std::chrono::minutes(5);
  double tolerance = 0.1;
  /// How long processor time of a new pod may be left out.
  Duration cpu_initialization_period = std::chrono::minutes(5);
  /// How long a new pod may change its readiness without having been ready.
  Duration initial_readiness_delay = std::chrono::seconds(30);
};

struct ControllersOptions {
  /// PEM that kube-root-ca.crt holds.
  std::string ca_pem = {};
  /// PEM of the key that signs tokens of service accounts; without it Secrets of tokens stay empty.
  std::string account_key_pem = {};
  /// Signs certificates that are asked for; without it nobody here does.
  net::Credential signing_ca = {};
  /// How long those last, unless they ask for less.
  Duration signing_duration = std::chrono::hours(8760);
  /// How long a node may be silent before it counts as gone.
  Duration node_monitor_grace_period = std::chrono::seconds(50);
  AutoscalerOptions autoscaler = {};
  /// The gate HPAScaleToZero.
  bool scale_to_zero = true;
  unsigned concurrency = 4;
  /// The accounts of those that run (controller_accounts()); empty: all. That of resource claims is
  /// enough for a benchmark of scheduling.
  std::vector<std::string> only = {};
  /// False: claims are nobody's business here (the gate DynamicResourceAllocation is off).
  bool claims = true;
  /// The gate DRAWorkloadResourceClaims: claims of PodGroups are made.
  bool group_claims = true;
  /// The gate DRADeviceTaintRules: rules taint devices.
  bool taint_rules = true;
  /// The gate DRAResourcePoolStatus: requests for the state of pools are answered.
  bool pool_status = true;
  /// Who speaks for an account (controller_accounts()); they must outlive the controllers. An
  /// account without one speaks through the client that all share.
  std::map<std::string, client::Client*, std::less<>> clients = {};
  /// Null: nothing is counted. Must outlive the controllers.
  metrics::Registry* metrics = nullptr;
};

/// Events of one account, each under the name of a component.
class Recorders {
 public:
  Recorders(client::Client& client, runtime::Runtime& runtime);

  /// `component`: what kubectl prints after "From"; "replicaset-controller".
  void event(const std::string& component, const Value& regarding, bool warning,
             const std::string& reason, const std::string& note);
  void stop();

 private:
  client::Client& client_;
  runtime::Runtime& runtime_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<client::EventRecorder>> recorders_ DIBS_GUARDED_BY(mutex_);
};

/// What a controller is given. Everything outlives it.
struct Environment {
  client::Client& client;  // as the controller's own account, with the rights of that
  runtime::Runtime& runtime;
  SharedInformers& informers;
  Discovery& discovery;
  Recorders& events;
  const ControllersOptions& options;

  /// For the part of a controller's work that has an account of its own.
  client::Client& as(std::string_view account) const;
};

/// Those that taint devices, where the server has them and the gate is on.
std::optional<ServedResource> find_taint_rules(const Environment& environment);

class Controller {
 public:
  virtual ~Controller() = default;
  /// Handlers are registered in the constructor; this is for what is not an informer's.
  virtual void start() {}
  /// Nothing of it runs when this returns. Idempotent.
  virtual void stop() = 0;
};

/// A queue and the function that works on its keys. The function is not called before all
/// informers have their first list.
class Reconciler {
 public:
  /// An error is retried with a growing delay.
  using Function = std::function<Result<WorkOutcome>(const std::string& key)>;

  using Done = std::function<void(Result<WorkOutcome> outcome)>;
  /// Goes on after it has returned, by call(), and tells `done` once.
  using LongFunction = std::function<void(const std::string& key, Done done)>;

  Reconciler(Environment& environment, std::string name, Function function,
             unsigned concurrency = 0);
  Reconciler(Environment& environment, std::string name, LongFunction function,
             unsigned concurrency = 0);

  void add(const std::string& key) { queue_.add(key); }
  void add_after(const std::string& key, Duration delay) { queue_.add_after(key, delay); }
  /// "namespace/name" of every object that comes, changes or goes.
  void follow(client::Informer& informer);
  /// `seen` gets every object that comes or goes, and both states of one that changes.
  void follow(client::Informer& informer, std::function<void(const Value& object)> seen);
  /// Asks the server without waiting. `then` runs on the executor, and not after stop().
  void call(client::Request request, std::function<void(const Result<Value>& answer)> then);
  void stop() { queue_.stop(); }

 private:
  void work(const std::string& key, const client::WorkQueue::Done& done);
  bool synced();

  Environment& environment_;
  std::string name_;
  LongFunction function_;
  std::atomic<bool> synced_{false};
  client::WorkQueue queue_;
};

// Small readers that every controller needs.

/// Done with a key.
inline Result<WorkOutcome> done() { return WorkOutcome::done(); }
/// An error that means somebody else was there first: nothing to report.
bool is_gone(const Error& error);
/// The ownerReference with controller: true, or null.
const Value& controller_of(const Value& object);
/// For an index of children: the uid of the controlling owner, if there is one.
std::vector<std::string> index_by_controller(const Value& object);
inline constexpr const char* kByController = "controller-uid";
/// For an index of pods: the node's name.
std::vector<std::string> index_by_node(const Value& pod);
inline constexpr const char* kByNode = "node";
inline constexpr const char* kByNamespace = "namespace";

using client::name_of;
using client::namespace_of;
using client::uid_of;
bool is_deleting(const Value& object);
/// Phase Succeeded or Failed.
bool is_pod_terminal(const Value& pod);
/// The condition of that type in status.conditions, or null.
const Value& find_condition(const Value& object, std::string_view type);
/// A controller's ownerReference to `owner`, with blockOwnerDeletion unless told otherwise.
Value owner_reference(const Value& owner, bool block = true);

/// core/v1 resources that several controllers name.
extern const Gvr kPods;
extern const Gvr kNodes;
extern const Gvr kNamespaces;

}  // namespace dibs::controllers
