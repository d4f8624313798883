#include "node/plugins/plugin_streams.h"

#include <algorithm>
#include <map>

#include "client/gate.h"
#include "client/serial.h"

namespace dibs::node {
namespace {

constexpr auto kRetry = std::chrono::seconds(5);

struct Watch {
  std::shared_ptr<DraPlugin> plugin;
  std::unique_ptr<rpc::Stream> stream;
  std::uint64_t attempt = 0;
  bool given_up = false;
};

}  // namespace

struct PluginStreams::State : std::enable_shared_from_this<State> {
  State(runtime::Runtime& r, Handlers h)
      : runtime(r), handlers(std::move(h)), serial(std::make_shared<client::Serial>(r.executor)) {}

  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      const client::GateEntry entry(self->gate);
      if (entry) task(*self);
    });
  }

  /// For callbacks that may come when all of this is gone.
  std::function<void(std::function<void(State&)>)> poster() {
    return [weak = weak_from_this()](std::function<void(State&)> task) {
      if (const auto self = weak.lock()) self->post(std::move(task));
    };
  }

  void later(Duration delay, std::function<void(State&)> task) {
    runtime.timers.after(delay, [post = poster(), task = std::move(task)] { post(task); });
  }

  void open(DraPlugin* key) {
    const auto found = watches.find(key);
    if (found == watches.end() || found->second.stream || found->second.given_up) return;
    Watch& watch = found->second;
    const std::uint64_t attempt = ++watch.attempt;
    rpc::StreamHandlers stream;
    stream.message = [post = poster(), key, attempt](std::string_view message) {
      post([key, attempt, bytes = std::string(message)](State& state) {
        if (const Watch* now = state.current(key, attempt)) {
          state.handlers.message(*now->plugin, bytes);
        }
      });
    };
    stream.ended = [post = poster(), key, attempt](const rpc::Status& status) {
      post([key, attempt, status](State& state) { state.ended(key, attempt, status); });
    };
    watch.stream =
        watch.plugin->channel().open_stream(handlers.method(*watch.plugin), "", std::move(stream));
  }

  Watch* current(DraPlugin* key, std::uint64_t attempt) {
    const auto found = watches.find(key);
    return found != watches.end() && found->second.attempt == attempt ? &found->second : nullptr;
  }

  void ended(DraPlugin* key, std::uint64_t attempt, const rpc::Status& status) {
    Watch* watch = current(key, attempt);
    if (!watch) return;
    watch->stream.reset();
    watch->given_up = !handlers.ended(*watch->plugin, status);
    if (!watch->given_up) later(kRetry, [key](State& state) { state.open(key); });
  }

  void remove(const std::shared_ptr<DraPlugin>& plugin) {
    if (watches.erase(plugin.get()) == 0) return;
    const bool last = std::none_of(watches.begin(), watches.end(), [&](const auto& entry) {
      return entry.second.plugin->info().name == plugin->info().name;
    });
    handlers.removed(*plugin, last);
  }

  runtime::Runtime& runtime;
  const Handlers handlers;
  const std::shared_ptr<client::Serial> serial;
  client::Gate gate;
  std::map<DraPlugin*, Watch> watches;  // only tasks of `serial` use it
};

PluginStreams::PluginStreams(runtime::Runtime& runtime, Handlers handlers)
    : state_(std::make_shared<State>(runtime, std::move(handlers))) {}

PluginStreams::~PluginStreams() { stop(); }

void PluginStreams::add(const std::shared_ptr<DraPlugin>& plugin) {
  state_->post([plugin](State& state) {
    state.watches[plugin.get()].plugin = plugin;
    state.open(plugin.get());
  });
}

void PluginStreams::remove(const std::shared_ptr<DraPlugin>& plugin) {
  state_->post([plugin](State& state) { state.remove(plugin); });
}

void PluginStreams::retry(const std::string& driver) {
  state_->post([driver](State& state) {
    for (auto& [key, watch] : state.watches) {
      if (watch.plugin->info().name == driver && watch.plugin->connected()) state.open(key);
    }
  });
}

void PluginStreams::later(Duration delay, std::function<void()> task) {
  state_->later(delay, [task = std::move(task)](State&) { task(); });
}

void PluginStreams::stop() {
  state_->gate.close();
  state_->watches.clear();
}

}  // namespace dibs::node
