#include "node/pods/pod_source.h"

#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/informer.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

const client::Gvr kPods{"", "v1", "pods"};
constexpr Duration kLook = std::chrono::milliseconds(5);

/// Calls `then` once the informer has its first list.
void when_synced(const std::shared_ptr<client::Informer>& informer, runtime::Runtime& runtime,
                 std::function<void()> then) {
  if (informer->synced()) return then();
  runtime.timers.after(kLook, [weak = std::weak_ptr(informer), &runtime, then = std::move(then)] {
    if (const auto held = weak.lock()) when_synced(held, runtime, then);
  });
}

std::string_view node_of(const json::Value& pod) { return pod["spec"]["nodeName"].as_string(); }

class OwnPods : public PodSource {
 public:
  OwnPods(client::Client& client, runtime::Runtime& runtime, const std::string& node)
      : runtime_(runtime), gate_(std::make_shared<client::Gate>()) {
    client::InformerOptions options;
    options.gvr = kPods;
    options.field_selector = cat("spec.nodeName=", node);
    informer_ = std::make_shared<client::Informer>(client, runtime, std::move(options));
  }
  ~OwnPods() override { stop(); }

  void start(PodHandlers handlers) override {
    client::InformerHandlers all;
    all.added = [changed = handlers.changed](const json::Value& pod, bool) { changed(pod); };
    all.updated = [handlers](const json::Value& before, const json::Value& after) {
      // Another pod of the same name between two looks.
      if (!(before["metadata"]["uid"] == after["metadata"]["uid"])) handlers.gone(before);
      handlers.changed(after);
    };
    all.removed = handlers.gone;
    informer_->add_handler(std::move(all));
    informer_->start();
    when_synced(informer_, runtime_, [gate = gate_, listed = handlers.listed] {
      client::GateEntry inside(*gate);
      if (inside) listed();
    });
  }

  void stop() override {
    gate_->close();
    informer_->stop();
  }

 private:
  runtime::Runtime& runtime_;
  std::shared_ptr<client::Gate> gate_;
  std::shared_ptr<client::Informer> informer_;
};

}  // namespace

struct SharedPods::State {
  State(client::Client& client, runtime::Runtime& world) : runtime(world) {
    client::InformerOptions options;
    options.gvr = kPods;
    options.field_selector = "spec.nodeName!=";
    informer = std::make_shared<client::Informer>(client, world, std::move(options));
    informer->add_index("node", [](const json::Value& pod) {
      return std::vector<std::string>{std::string(node_of(pod))};
    });
  }

  struct Node {
    PodHandlers handlers;
    client::Gate gate;
  };

  runtime::Runtime& runtime;
  std::shared_ptr<client::Informer> informer;
  Mutex mutex;
  std::map<std::string, std::shared_ptr<Node>, std::less<>> nodes DIBS_GUARDED_BY(mutex);
  bool started DIBS_GUARDED_BY(mutex) = false;

  std::shared_ptr<Node> find(const json::Value& pod) {
    const MutexLock lock(mutex);
    const auto found = nodes.find(node_of(pod));
    return found == nodes.end() ? nullptr : found->second;
  }

  void changed(const json::Value& pod) {
    if (const auto node = find(pod)) {
      client::GateEntry inside(node->gate);
      if (inside) node->handlers.changed(pod);
    }
  }
  void gone(const json::Value& pod) {
    if (const auto node = find(pod)) {
      client::GateEntry inside(node->gate);
      if (inside) node->handlers.gone(pod);
    }
  }

  /// Starts the informer with the first node.
  void start() {
    {
      const MutexLock lock(mutex);
      if (started) return;
      started = true;
    }
    client::InformerHandlers all;
    all.added = [this](const json::Value& pod, bool) { changed(pod); };
    all.updated = [this](const json::Value& before, const json::Value& after) {
      if (!(before["metadata"]["uid"] == after["metadata"]["uid"])) gone(before);
      changed(after);
    };
    all.removed = [this](const json::Value& pod) { gone(pod); };
    informer->add_handler(std::move(all));
    informer->start();
  }
};

namespace {

class SharedSource : public PodSource {
 public:
  SharedSource(std::string node, std::function<void(const std::string&, PodHandlers)> enter,
               std::function<void(const std::string&)> leave)
      : node_(std::move(node)), enter_(std::move(enter)), leave_(std::move(leave)) {}
  ~SharedSource() override { stop(); }
  void start(PodHandlers handlers) override { enter_(node_, std::move(handlers)); }
  void stop() override { leave_(node_); }

 private:
  const std::string node_;
  const std::function<void(const std::string&, PodHandlers)> enter_;
  const std::function<void(const std::string&)> leave_;
};

}  // namespace

std::unique_ptr<PodSource> watch_own_pods(client::Client& client, runtime::Runtime& runtime,
                                          const std::string& node) {
  return std::make_unique<OwnPods>(client, runtime, node);
}

SharedPods::SharedPods(client::Client& client, runtime::Runtime& runtime)
    : state_(std::make_shared<State>(client, runtime)) {}
SharedPods::~SharedPods() { stop(); }
void SharedPods::stop() { state_->informer->stop(); }

std::unique_ptr<PodSource> SharedPods::of_node(const std::string& node) {
  auto enter = [state = state_](const std::string& name, PodHandlers handlers) {
    auto entry = std::make_shared<State::Node>();
    entry->handlers = std::move(handlers);
    {
      const MutexLock lock(state->mutex);
      state->nodes[name] = entry;
    }
    state->start();
    when_synced(state->informer, state->runtime, [state, entry, name] {
      client::GateEntry inside(entry->gate);
      if (!inside) return;
      // What was listed before this node came; hearing of a pod twice does no harm.
      for (const auto& pod : state->informer->by_index("node", name)) entry->handlers.changed(pod);
      entry->handlers.listed();
    });
  };
  auto leave = [state = state_](const std::string& name) {
    std::shared_ptr<State::Node> entry;
    {
      const MutexLock lock(state->mutex);
      const auto found = state->nodes.find(name);
      if (found == state->nodes.end()) return;
      entry = found->second;
      state->nodes.erase(found);
    }
    entry->gate.close();
  };
  return std::make_unique<SharedSource>(node, std::move(enter), std::move(leave));
}

}  // namespace dibs::node
