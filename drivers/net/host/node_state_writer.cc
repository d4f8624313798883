#include "drivers/net/host/node_state_writer.h"

#include <algorithm>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

const client::Gvr kNodes = {"", "v1", "nodes"};

/// Changes are seen at such a distance, however many there are: that is what lets a storm of events
/// cost one look.
constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kHeartbeat = std::chrono::seconds(60);
constexpr Duration kLongestPause = std::chrono::seconds(30);

}  // namespace

struct NodeStateWriter::State : std::enable_shared_from_this<State> {
  State(client::Client& api, runtime::Runtime& runtime, std::unique_ptr<HostFacts> facts,
        NodeStateWriterOptions options)
      : api(api), runtime(runtime), facts(std::move(facts)), options(std::move(options)) {}

  client::Client& api;
  runtime::Runtime& runtime;
  const std::unique_ptr<HostFacts> facts;
  const NodeStateWriterOptions options;
  client::Gate gate;

  mutable Mutex mutex;
  std::optional<NodeState> seen DIBS_GUARDED_BY(mutex);
  bool is_written DIBS_GUARDED_BY(mutex) = false;
  runtime::TimerId timer DIBS_GUARDED_BY(mutex) = 0;
  bool stopped DIBS_GUARDED_BY(mutex) = false;

  // Of the one task that runs at a time.
  std::optional<NodeState> written;
  Value stored;  // the object as the server has it
  Duration next_look{0};
  Duration next_write{0};
  Duration pause{0};
  std::string look_error;
  std::string write_error;

  void schedule(Duration delay) {
    const MutexLock lock(mutex);
    if (stopped) return;
    timer = runtime.timers.after(delay, [self = shared_from_this()] {
      const client::GateEntry entry(self->gate);
      if (!entry) return;
      self->tick();
      self->schedule(kTick);
    });
  }

  void tick() {
    const Duration now = runtime.clock.steady();
    // Asked in any case: it forgets what it has told.
    const bool changed = facts->changed();
    if (changed || now >= next_look) look(now);
    write_if_needed(now);
  }

  void look(Duration now) {
    auto state = facts->read();
    next_look = now + (state ? facts->rescan() : kTick);
    tell(look_error, state ? nullptr : &state.error());
    NodeState current;
    bool differs = false;
    {
      const MutexLock lock(mutex);
      if (!state) {
        // What was seen before stands, with its age and the reason why there is nothing newer.
        if (!seen) return;
        current = *seen;
        current.problem = state.error().message();
      } else {
        current = *std::move(state);
      }
      differs = !seen || !same_facts(*seen, current);
      seen = current;
      if (differs) is_written = false;
    }
    if (differs && options.changed) options.changed(current);
  }

  void write_if_needed(Duration now) {
    std::optional<NodeState> state;
    {
      const MutexLock lock(mutex);
      state = seen;
    }
    if (!state || now < next_write) return;
    const bool differs = !written || !same_facts(*written, *state);
    const bool old = written && state->observed - written->observed >= kHeartbeat;
    if (!differs && !old) return;
    const auto result = write(*state);
    tell(write_error, result ? nullptr : &result.error());
    if (!result) {
      pause = std::clamp<Duration>(pause * 2, kTick, kLongestPause);
      next_write = now + pause;
      return;
    }
    pause = Duration(0);
    written = state;
    const MutexLock lock(mutex);
    is_written = seen && same_facts(*seen, *written);
  }

  /// The same failure over and over is told once. Null: it went well.
  void tell(std::string& last, const Error* error) {
    const std::string message = error == nullptr ? "" : error->message();
    if (message == last) return;
    last = message;
    if (error != nullptr && options.background_error) {
      options.background_error(error->within("SpiderNodeState"));
    }
  }

  Result<> write(const NodeState& state) {
    if (!stored.is_object()) DIBS_CHECK(find_or_create(state));
    Value object = stored;
    object.set("status", to_object(state, "")["status"]);
    auto answer = api.update_status(kNodeStates, "", object);
    if (!answer) {
      // Whatever it was based on is not what is there.
      stored = Value();
      if (answer.error().code() != Code::conflict && answer.error().code() != Code::not_found) {
        return answer.error();
      }
      DIBS_CHECK(find_or_create(state));
      object = stored;
      object.set("status", to_object(state, "")["status"]);
      answer = api.update_status(kNodeStates, "", object);
      if (!answer) return answer.error();
    }
    stored = *std::move(answer);
    return success();
  }

  /// The object with the right owner: the node that is there now.
  Result<> find_or_create(const NodeState& state) {
    DIBS_TRY(const Value node, api.get(kNodes, "", state.node));
    Value wanted = to_object(state, client::uid_of(node));
    wanted.erase("status");
    auto found = api.get(kNodeStates, "", state.node);
    if (!found && found.error().code() == Code::not_found) {
      found = api.create(kNodeStates, "", wanted);
    }
    if (!found) return found.error();
    if ((*found)["metadata"]["ownerReferences"] != wanted["metadata"]["ownerReferences"]) {
      Value owned = *found;
      owned.mut("metadata").set("ownerReferences", wanted["metadata"]["ownerReferences"]);
      found = api.update(kNodeStates, "", owned);
      if (!found) return found.error();
    }
    stored = *std::move(found);
    return success();
  }
};

NodeStateWriter::NodeStateWriter(client::Client& api, runtime::Runtime& runtime,
                                 std::unique_ptr<HostFacts> facts, NodeStateWriterOptions options)
    : state_(std::make_shared<State>(api, runtime, std::move(facts), std::move(options))) {}

NodeStateWriter::~NodeStateWriter() { stop(); }

void NodeStateWriter::start() { state_->schedule(Duration(0)); }

std::optional<NodeState> NodeStateWriter::state() const {
  const MutexLock lock(state_->mutex);
  return state_->seen;
}

bool NodeStateWriter::written() const {
  const MutexLock lock(state_->mutex);
  return state_->is_written;
}

void NodeStateWriter::stop() {
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    state_->runtime.timers.cancel(state_->timer);
  }
  state_->gate.close();
}

}  // namespace dibs::drivers::net
