#include "node/pods/node_object.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/serial_state.h"
#include "node/pods/node_lease.h"
#include "node/pods/node_status.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kNodes{"", "v1", "nodes"};
std::uint64_t revision_of(const Value& object) {
  const std::string text = object["metadata"]["resourceVersion"].str();
  return std::strtoull(text.c_str(), nullptr, 10);
}

constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLongestRetry = std::chrono::seconds(7);

}  // namespace

struct NodeObject::State : client::SerialState<NodeObject::State> {
  State(client::Client& api, runtime::Runtime& world, client::EventRecorder& recorder,
        const NodeFacts& node, NodeOptions how)
      : SerialState(api, world), events(recorder), facts(node), options(std::move(how)) {}

  client::EventRecorder& events;
  const NodeFacts& facts;
  const NodeOptions options;

  // On `serial` only.
  NodeState state;
  std::function<void(const Value&)> registered;
  bool is_registered = false;
  bool writing = false;  // a status is on its way
  bool again = false;    // and another one must follow
  Duration retry = kFirstRetry;

  mutable Mutex mutex;
  Value object DIBS_GUARDED_BY(mutex);
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);  // the next write
  std::unique_ptr<NodeLease> lease DIBS_GUARDED_BY(mutex);
  std::unique_ptr<client::Informer> watch DIBS_GUARDED_BY(mutex);

  void after(Duration wait, void (State::*then)()) {
    if (gate.closed()) return;
    const std::weak_ptr<State> weak = weak_from_this();
    const MutexLock lock(mutex);
    if (timer) runtime.timers.cancel(*timer);
    timer = runtime.timers.after(wait, [weak, then] {
      if (const auto self = weak.lock()) self->post([then](State& us) { (us.*then)(); });
    });
  }

  void fail(const Error& error, void (State::*then)()) {
    log::warn("cannot write the node", {{"node", facts.name}, {"error", error.message()}});
    after(retry, then);
    retry = std::min(retry * 2, kLongestRetry);
  }

  Value known() const {
    const MutexLock lock(mutex);
    return object;
  }

  /// Answers and events come by different ways: an older one changes nothing.
  void keep(const Value& seen) {
    const MutexLock lock(mutex);
    const bool same = object["metadata"]["uid"] == seen["metadata"]["uid"];
    if (same && revision_of(seen) < revision_of(object)) return;
    object = seen;
  }

  void begin_watch() {
    client::InformerOptions how;
    how.gvr = kNodes;
    how.field_selector = cat("metadata.name=", facts.name);
    auto made = std::make_unique<client::Informer>(client, runtime, std::move(how));
    const std::weak_ptr<State> weak = weak_from_this();
    const auto see = [weak](const Value& node) {
      if (const auto self = weak.lock()) self->keep(node);
    };
    client::InformerHandlers handlers;
    handlers.added = [see](const Value& node, bool) { see(node); };
    handlers.updated = [see](const Value&, const Value& node) { see(node); };
    made->add_handler(std::move(handlers));
    made->start();
    const MutexLock lock(mutex);
    watch = std::move(made);
  }

  void event(const std::string& reason, const std::string& note) {
    client::EventInput input;
    // The kubelet names its node by name alone, before it knows the object's uid.
    input.regarding = Value::object(
        {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", facts.name}, {"uid", facts.name}});
    input.reason = reason;
    input.note = note;
    events.record(std::move(input));
  }

  void tell(const Value& before, const Value& after_it) {
    for (const auto& reason : condition_events(before, after_it)) {
      event(reason, cat("Node ", facts.name, " status is now: ", reason));
    }
  }

  // Registration: create; if it is there, take it over.

  void create() {
    again = false;  // all that was told so far is in it
    call(client::create_request(kNodes, "", new_node(facts, options, state, runtime.clock.now())),
         &State::on_created);
  }

  void on_created(const Result<Value>& answer) {
    if (answer) {
      tell(Value(), (*answer)["status"]);
      return finish(*answer, true);
    }
    if (answer.error().code() == Code::already_exists) {
      return call(client::make_request("GET", client::path_of(kNodes, "", facts.name)),
                  &State::on_found);
    }
    fail(answer.error(), &State::create);
  }

  void on_found(const Result<Value>& answer) {
    if (!answer) return fail(answer.error(), &State::create);
    const Value patch = metadata_patch(*answer, facts, options);
    if (patch.is_null()) return finish(*answer, false);
    call(client::patch_request(kNodes, "", facts.name, client::PatchType::merge, patch),
         &State::on_adopted);
  }

  void on_adopted(const Result<Value>& answer) {
    if (!answer) return fail(answer.error(), &State::create);
    finish(*answer, false);
  }

  void finish(const Value& node, bool fresh) {
    retry = kFirstRetry;
    is_registered = true;
    keep(node);
    NodeLeaseOptions how;
    how.node = facts.name;
    how.node_uid = node["metadata"]["uid"].str();
    how.agent = options.agent;
    how.duration = options.lease_duration;
    how.period = options.lease_period;
    const std::weak_ptr<State> weak = weak_from_this();
    auto made = std::make_unique<NodeLease>(client, runtime, how, [weak] {
      if (const auto self = weak.lock()) self->post([](State& us) { us.update(); });
    });
    made->start();
    {
      const MutexLock lock(mutex);
      lease = std::move(made);
    }
    if (options.watch) begin_watch();
    if (registered) registered(node);
    // What was told while the registration was under way is not in it yet.
    if (!fresh || std::exchange(again, false)) return update();
    after(options.status_period, &State::update);
  }

  // The status: read what stands, lay ours over it.

  void update() {
    if (!is_registered || writing) {
      again = true;
      return;
    }
    writing = true;
    again = false;
    call(client::make_request("GET", client::path_of(kNodes, "", facts.name)), &State::on_read);
  }

  void on_read(const Result<Value>& answer) {
    if (!answer) return fail_update(answer.error());
    keep(*answer);
    client::WriteOptions how;
    how.subresource = "status";
    const Value status =
        node_status(facts, options, state, (*answer)["status"], runtime.clock.now());
    const Value patch = Value::object({{"status", status}});
    call(client::patch_request(kNodes, "", facts.name, client::PatchType::strategic, patch, how),
         &State::on_written);
  }

  void on_written(const Result<Value>& answer) {
    if (!answer) return fail_update(answer.error());
    tell(known()["status"], (*answer)["status"]);
    keep(*answer);
    writing = false;
    retry = kFirstRetry;
    if (again) return update();
    after(options.status_period, &State::update);
  }

  void fail_update(const Error& error) {
    writing = false;
    fail(error, &State::update);
  }
};

NodeObject::NodeObject(client::Client& client, runtime::Runtime& runtime,
                       client::EventRecorder& events, const NodeFacts& facts, NodeOptions options)
    : state_(std::make_shared<State>(client, runtime, events, facts, std::move(options))) {}

NodeObject::~NodeObject() { stop(); }

void NodeObject::start(std::function<void(const Value&)> registered) {
  state_->post([registered = std::move(registered)](State& us) {
    us.registered = registered;
    us.event("Starting", "Starting kubelet.");
    us.create();
  });
}

void NodeObject::stop() {
  state_->gate.close();
  std::unique_ptr<NodeLease> lease;
  std::unique_ptr<client::Informer> watch;
  {
    const MutexLock lock(state_->mutex);
    if (state_->timer) state_->runtime.timers.cancel(*state_->timer);
    lease = std::move(state_->lease);
    watch = std::move(state_->watch);
  }
  if (lease) lease->stop();
  if (watch) watch->stop();
}

void NodeObject::set_ready(Result<> ready) {
  state_->post([ready = std::move(ready)](State& us) {
    const auto text = [](const Result<>& r) { return r ? std::string() : r.error().message(); };
    if (us.state.ready.ok() == ready.ok() && text(us.state.ready) == text(ready)) return;
    us.state.ready = ready;
    us.update();
  });
}

void NodeObject::set_images(std::vector<ImageInfo> images) {
  state_->post([images = std::move(images)](State& us) {
    const auto same = [](const ImageInfo& a, const ImageInfo& b) {
      return a.id == b.id && a.tags == b.tags && a.digests == b.digests;
    };
    const auto& known = us.state.images;
    if (std::equal(known.begin(), known.end(), images.begin(), images.end(), same)) return;
    us.state.images = images;
    us.update();
  });
}

void NodeObject::set_disk_pressure(bool pressure) {
  state_->post([pressure](State& us) {
    if (us.state.disk_pressure == pressure) return;
    us.state.disk_pressure = pressure;
    us.update();
  });
}

void NodeObject::set_devices(DeviceAmounts devices) {
  state_->post([devices = std::move(devices)](State& us) {
    if (us.state.devices == devices) return;
    us.state.devices = devices;
    us.update();
  });
}

void NodeObject::set_volumes_in_use(std::vector<std::string> names) {
  state_->post([names = std::move(names)](State& us) {
    if (us.state.volumes_in_use == names) return;
    us.state.volumes_in_use = names;
    us.update();
  });
}

Value NodeObject::object() const { return state_->known(); }

Value NodeObject::read() const {
  if (const auto now = state_->client.get(kNodes, "", state_->facts.name)) state_->keep(*now);
  return state_->known();
}

}  // namespace dibs::node
