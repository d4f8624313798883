#include "node/pods/node_lease.h"

#include <algorithm>
#include <optional>

#include "base/mutex.h"
#include "client/serial_state.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
constexpr const char* kNamespace = kNodeLeases;
constexpr Duration kFirstRetry = std::chrono::milliseconds(200);
constexpr Duration kLongestRetry = std::chrono::seconds(7);

}  // namespace

struct NodeLease::State : client::SerialState<NodeLease::State> {
  State(client::Client& api, runtime::Runtime& world, NodeLeaseOptions how,
        std::function<void()> tell)
      : SerialState(api, world), options(std::move(how)), recovered(std::move(tell)) {}

  const NodeLeaseOptions options;
  const std::function<void()> recovered;

  // On `serial` only.
  Value lease;  // as last answered; null: look it up
  std::optional<Duration> renewed;
  Duration retry = kFirstRetry;

  Mutex mutex;
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);

  Value renewed_lease(Value object) const {
    Value& spec = object.mut("spec");
    spec.set("holderIdentity", options.node);
    spec.set("leaseDurationSeconds", static_cast<long>(options.duration / std::chrono::seconds(1)));
    spec.set("renewTime", format_rfc3339_micro(runtime.clock.now()));
    if (!options.agent.empty()) {
      object.mut("metadata").mut("annotations").set(kAgentAnnotation, options.agent);
    }
    if (object["metadata"]["ownerReferences"].empty() && !options.node_uid.empty()) {
      object.mut("metadata")
          .set("ownerReferences", Value::array({Value::object({{"apiVersion", "v1"},
                                                               {"kind", "Node"},
                                                               {"name", options.node},
                                                               {"uid", options.node_uid}})}));
    }
    return object;
  }

  void renew() {
    if (!lease.is_null()) {
      return call(client::update_request(kLeases, kNamespace, renewed_lease(lease)),
                  &State::on_written);
    }
    const Value fresh = Value::object(
        {{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", Value::object({{"name", options.node}, {"namespace", kNamespace}})},
         {"spec", Value::object()}});
    call(client::create_request(kLeases, kNamespace, renewed_lease(fresh)), &State::on_written);
  }

  void on_written(const Result<Value>& answer) {
    if (answer) {
      lease = *answer;
      retry = kFirstRetry;
      const Duration now = runtime.clock.steady();
      const bool late = renewed && now - *renewed > options.duration;
      renewed = now;
      if (late && recovered) recovered();
      // A few per cent apart, so that nodes started together do not stay together.
      const auto spread = static_cast<std::uint64_t>(options.period.count()) / 25;
      return again(options.period +
                   Duration(static_cast<std::int64_t>(runtime.random.below(spread + 1))));
    }
    const Code code = answer.error().code();
    if (code == Code::conflict || code == Code::already_exists) {
      return call(client::make_request("GET", client::path_of(kLeases, kNamespace, options.node)),
                  &State::on_read);
    }
    // Deleted under us: made anew.
    lease = Value();
    back_off();
  }

  void on_read(const Result<Value>& answer) {
    if (!answer) return back_off();
    lease = *answer;
    // An owner of an earlier life would take the lease away with it.
    if (lease["metadata"]["ownerReferences"][0]["uid"].as_string() != options.node_uid) {
      lease.mut("metadata").erase("ownerReferences");
    }
    renew();
  }

  void back_off() {
    again(retry);
    retry = std::min(retry * 2, kLongestRetry);
  }

  void again(Duration wait) {
    if (gate.closed()) return;
    const std::weak_ptr<State> weak = weak_from_this();
    const MutexLock lock(mutex);
    timer = runtime.timers.after(wait, [weak] {
      if (const auto self = weak.lock()) self->post([](State& state) { state.renew(); });
    });
  }
};

NodeLease::NodeLease(client::Client& client, runtime::Runtime& runtime, NodeLeaseOptions options,
                     std::function<void()> recovered)
    : state_(std::make_shared<State>(client, runtime, std::move(options), std::move(recovered))) {}

NodeLease::~NodeLease() { stop(); }

void NodeLease::start() {
  state_->post([](State& state) { state.renew(); });
}

void NodeLease::stop() {
  state_->gate.close();
  const MutexLock lock(state_->mutex);
  if (state_->timer) state_->runtime.timers.cancel(*state_->timer);
}

}  // namespace dibs::node
