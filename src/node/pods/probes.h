#pragma once
// Startup, liveness and readiness probes of a node's containers.
//
// Every start of a container is one instance with up to three probes, each with its own period.
// While a startup probe has not passed, the other two wait. What has just started has a period
// until its liveness is asked for or its startup judged. A probe's outcome counts after
// successThreshold or failureThreshold equal answers in a row; until then the old one stays: not
// ready, alive, not started. A liveness or startup probe that failed stops probing: its container
// is about to be killed, and the next one is a new instance.
//
// Probing runs on the runtime's executor; callbacks too, never inside a call. Thread-safe.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

enum class ProbeKind : std::uint8_t { startup, liveness, readiness };
/// "Startup", "Liveness", "Readiness"
std::string_view probe_name(ProbeKind kind);

struct ProbeAnswer {
  enum class Outcome : std::uint8_t { success, warning, failure, unknown };
  Outcome outcome = Outcome::success;
  /// What stands after "Readiness probe failed: ".
  std::string output = {};
};

/// One container that runs.
struct ProbedContainer {
  json::Value pod = {};
  json::Value container = {};  // of the spec
  std::string id = {};         // the runtime's; another id is another instance
  Time started = {};
  std::string pod_ip = {};  // what probes talk to unless they name a host
  /// What was told of this very container before the agent began: it stays so until a probe says
  /// otherwise.
  bool was_started = false;
  bool was_ready = false;
};

/// Asks once. Blocks up to `timeout`. make_prober() is the real one.
using Prober = std::function<ProbeAnswer(const ProbedContainer& container, const json::Value& probe,
                                         Duration timeout)>;
/// exec through the runtime; httpGet, tcpSocket and grpc over the network. Of simulated containers
/// the latter succeed unasked: whoever answers at such an address is somebody else.
Prober make_prober(ContainerRuntime& containers, bool simulated);

struct ProbeCallbacks {
  /// `started` or `ready` of a container of that pod changed.
  std::function<void(const std::string& pod_uid)> changed = {};
  /// A startup or liveness probe failed for good: kill the container. The note of the Killing event
  /// is `Container c failed liveness probe, will be restarted`.
  std::function<void(const ProbedContainer& container, ProbeKind kind)> failed = {};
  /// Events about the container: warning Unhealthy `Readiness probe failed: …`, ProbeWarning.
  std::function<void(const ProbedContainer& container, const std::string& reason,
                     const std::string& note)>
      event = {};
};

class Probes {
 public:
  /// `runtime` must outlive it.
  Probes(runtime::Runtime& runtime, Prober prober, ProbeCallbacks callbacks);
  /// As stop().
  ~Probes();
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  /// A container runs. Repeating it for the same id only takes over the newer pod; another id of
  /// the same name replaces the instance.
  void add(ProbedContainer container);
  /// The container ended, or is being ended: no more probes.
  void remove(const std::string& pod_uid, std::string_view container);
  /// While a pod terminates, only its readiness is still asked for.
  void pod_terminating(const std::string& pod_uid);
  void remove_pod(const std::string& pod_uid);

  /// Of the instance with that id: true at once without such a probe. Ready needs started. False
  /// for an unknown instance.
  bool started(const std::string& pod_uid, std::string_view container, const std::string& id) const;
  bool ready(const std::string& pod_uid, std::string_view container, const std::string& id) const;

  void stop();

  /// prober_probe_total and prober_probe_duration_seconds, as Prometheus' text.
  std::string metrics() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
