#include "client/informer.h"

#include <atomic>
#include <unordered_set>

#include "base/mutex.h"
#include "client/gate.h"
#include "client/serial.h"
#include "json/share.h"

namespace dibs::client {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(800);
constexpr Duration kLongestDelay = std::chrono::seconds(30);
// A watch that ends sooner and says nothing is a server in trouble, not a timeout.
constexpr Duration kShortWatch = std::chrono::seconds(1);
constexpr int kPage = 500;

/// Without who owns which field, which is of no use here and often half of the object, and made of
/// what is in memory already. From a server in this process it comes so.
json::Value kept(json::Value object, Transport& from) {
  const json::Value& metadata = object["metadata"];
  const bool managed = metadata.contains("managedFields");
  if (!managed && json::is_shared(object)) return object;
  json::Pool& trees = from.trees();
  if (metadata.is_object()) {
    object.set("metadata", managed ? trees.share_without(metadata, "managedFields")
                                   : trees.share_parts(metadata));
  }
  return trees.share_parts(std::move(object));
}

}  // namespace

struct Informer::State : std::enable_shared_from_this<Informer::State> {
  State(Client& api, runtime::Runtime& world, InformerOptions what)
      : client(api),
        runtime(world),
        options(std::move(what)),
        serial(std::make_shared<Serial>(world.executor)) {}

  Client& client;
  runtime::Runtime& runtime;
  const InformerOptions options;
  const std::shared_ptr<Serial> serial;
  Gate gate;
  ObjectStore store;
  std::atomic<std::uint64_t> lists = 0;

  mutable Mutex mutex;
  mutable CondVar changed;
  bool synced DIBS_GUARDED_BY(mutex) = false;
  bool started DIBS_GUARDED_BY(mutex) = false;
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);  // the retry
  std::optional<runtime::TimerId> resync_timer DIBS_GUARDED_BY(mutex);

  // On `serial` only.
  std::vector<InformerHandlers> handlers;
  std::string revision;
  bool consistent = false;  // the next list must not come from a cache
  std::vector<json::Value> pages;
  std::unique_ptr<TransportStream> stream;
  std::uint64_t epoch = 0;  // of the watch; events of an earlier one are stale
  bool heard = false;       // the watch has said something
  Duration watch_began{0};
  Duration delay = kFirstDelay;

  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      GateEntry inside(self->gate);
      if (inside) task(*self);
    });
  }

  void begin_list() {
    pages.clear();
    ListOptions list;
    list.label_selector = options.label_selector;
    list.field_selector = options.field_selector;
    list.metadata_only = options.metadata_only;
    list.omit_managed_fields = true;
    if (consistent) {
      list.limit = kPage;
    } else {
      // Whatever the server has in memory will do: the watch brings it up to date.
      list.resource_version = "0";
    }
    request_page(list);
  }

  void request_page(ListOptions list) {
    if (gate.closed()) return;
    client.call(list_request(options.gvr, options.name_space, list),
                [self = shared_from_this(), list](Result<json::Value> answer) {
                  self->post([answer = std::move(answer), list](State& state) {
                    state.on_page(answer, list);
                  });
                });
  }

  void on_page(const Result<json::Value>& answer, ListOptions list) {
    if (!answer) {
      const Code code = answer.error().code();
      if (code == Code::expired || code == Code::gone) consistent = true;
      return retry([](State& state) { state.begin_list(); });
    }
    List page = read_list(*answer);
    pages.insert(pages.end(), std::make_move_iterator(page.items.begin()),
                 std::make_move_iterator(page.items.end()));
    if (!page.continue_token.empty()) {
      list.continue_token = page.continue_token;
      list.resource_version.clear();
      return request_page(std::move(list));
    }
    ++lists;
    revision = page.resource_version;
    consistent = false;
    replace(std::move(pages));
    pages.clear();
    {
      const MutexLock lock(mutex);
      synced = true;
    }
    changed.notify_all();
    begin_watch();
  }

  void replace(std::vector<json::Value> items) {
    const bool initial = lists == 1;
    std::unordered_set<std::string> present;
    for (auto& item : items) {
      const std::string key = key_of(item);
      present.insert(key);
      upsert(key, std::move(item), initial);
    }
    for (const auto& key : store.keys()) {
      if (!present.contains(key)) drop(key);
    }
  }

  void upsert(const std::string& key, json::Value object, bool initial) {
    object = kept(options.keep ? options.keep(object) : std::move(object), client.transport());
    const auto before = store.put(key, object);
    if (!before) {
      for (const auto& handler : handlers) {
        if (handler.added) handler.added(object, initial);
      }
      return;
    }
    const auto& old_revision = (*before)["metadata"]["resourceVersion"];
    if (old_revision == object["metadata"]["resourceVersion"] && !old_revision.is_null()) return;
    for (const auto& handler : handlers) {
      if (handler.updated) handler.updated(*before, object);
    }
  }

  void drop(const std::string& key, const json::Value* last = nullptr) {
    const auto before = store.remove(key);
    if (!before) return;
    for (const auto& handler : handlers) {
      if (handler.removed) handler.removed(last != nullptr ? *last : *before);
    }
  }

  void begin_watch() {
    if (gate.closed()) return;  // a handler has stopped the informer
    WatchOptions watch;
    watch.label_selector = options.label_selector;
    watch.field_selector = options.field_selector;
    watch.metadata_only = options.metadata_only;
    watch.omit_managed_fields = true;
    watch.resource_version = revision;
    // Spread, so that a thousand clients do not come back at the same moment.
    watch.timeout_seconds = 300 + static_cast<int>(runtime.random.below(300));
    const std::uint64_t mine = ++epoch;
    heard = false;
    watch_began = runtime.clock.steady();
    const std::weak_ptr<State> weak = weak_from_this();
    stream = client.watch(options.gvr, options.name_space, watch,
                          {.event =
                               [weak, mine](WatchEvent event) {
                                 if (const auto self = weak.lock()) {
                                   self->post([mine, event = std::move(event)](State& state) {
                                     if (mine == state.epoch) state.on_event(event);
                                   });
                                 }
                               },
                           .ended =
                               [weak, mine](Result<> outcome) {
                                 if (const auto self = weak.lock()) {
                                   self->post([mine, outcome](State& state) {
                                     if (mine == state.epoch) state.on_ended(outcome);
                                   });
                                 }
                               }});
  }

  void on_event(const WatchEvent& event) {
    heard = true;
    delay = kFirstDelay;
    const auto at = event.object["metadata"]["resourceVersion"].as_string();
    if (event.type == "ADDED" || event.type == "MODIFIED") {
      upsert(key_of(event.object), event.object, false);
    } else if (event.type == "DELETED") {
      drop(key_of(event.object), &event.object);
    } else if (event.type != "BOOKMARK") {
      return;
    }
    if (!at.empty()) revision = at;
  }

  void on_ended(const Result<>& outcome) {
    ++epoch;
    stream.reset();
    if (outcome.ok()) {
      const bool normal = heard || runtime.clock.steady() - watch_began >= kShortWatch;
      if (normal) return begin_watch();
      return retry([](State& state) { state.begin_watch(); });
    }
    switch (outcome.error().code()) {
      case Code::expired:
      case Code::gone:
        consistent = true;
        return heard ? begin_list() : retry([](State& state) { state.begin_list(); });
      case Code::unavailable:
      case Code::timeout:
      case Code::server_timeout:
      case Code::too_many_requests:
        // The place in the stream is still good.
        return retry([](State& state) { state.begin_watch(); });
      default:
        return retry([](State& state) { state.begin_list(); });
    }
  }

  void retry(std::function<void(State&)> task) {
    if (gate.closed()) return;
    const auto jitter =
        static_cast<std::int64_t>(runtime.random.below(static_cast<std::uint64_t>(delay.count())));
    const Duration wait = std::min<Duration>(delay + Duration(jitter), kLongestDelay);
    delay = std::min<Duration>(delay * 2, kLongestDelay);
    const std::weak_ptr<State> weak = weak_from_this();
    const auto id = runtime.timers.after(wait, [weak, task = std::move(task)] {
      if (const auto self = weak.lock()) self->post(task);
    });
    const MutexLock lock(mutex);
    timer = id;
  }

  void arm_resync() {
    if (gate.closed()) return;
    if (options.resync.count() <= 0) return;
    const std::weak_ptr<State> weak = weak_from_this();
    const auto id = runtime.timers.after(options.resync, [weak] {
      if (const auto self = weak.lock()) {
        self->post([](State& state) {
          for (const auto& object : state.store.list()) {
            for (const auto& handler : state.handlers) {
              if (handler.updated) handler.updated(object, object);
            }
          }
          state.arm_resync();
        });
      }
    });
    const MutexLock lock(mutex);
    resync_timer = id;
  }
};

Informer::Informer(Client& client, runtime::Runtime& runtime, InformerOptions options)
    : state_(std::make_shared<State>(client, runtime, std::move(options))) {}

Informer::~Informer() { stop(); }

void Informer::add_index(const std::string& name, ObjectStore::Index index) {
  state_->store.add_index(name, std::move(index));
}

void Informer::add_handler(InformerHandlers handlers) {
  state_->post([handlers = std::move(handlers)](State& state) {
    state.handlers.push_back(handlers);
    if (!handlers.added) return;
    for (const auto& object : state.store.list()) handlers.added(object, true);
  });
}

void Informer::start() {
  {
    const MutexLock lock(state_->mutex);
    if (std::exchange(state_->started, true)) return;
  }
  state_->post([](State& state) {
    state.begin_list();
    state.arm_resync();
  });
}

void Informer::stop() {
  state_->gate.close();
  {
    const MutexLock lock(state_->mutex);
    if (state_->timer) state_->runtime.timers.cancel(*state_->timer);
    if (state_->resync_timer) state_->runtime.timers.cancel(*state_->resync_timer);
    state_->timer.reset();
    state_->resync_timer.reset();
  }
  // The gate is closed, so nobody else is at it.
  state_->stream.reset();
  state_->serial->clear();
}

bool Informer::synced() const {
  const MutexLock lock(state_->mutex);
  return state_->synced;
}

bool Informer::wait_until_synced(Duration timeout) const {
  MutexLock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout,
                                  [this]() DIBS_REQUIRES(state_->mutex) { return state_->synced; });
}

std::optional<json::Value> Informer::get(const std::string& key) const {
  return state_->store.get(key);
}
std::vector<json::Value> Informer::list() const { return state_->store.list(); }
std::vector<json::Value> Informer::by_index(const std::string& name,
                                            const std::string& value) const {
  return state_->store.by_index(name, value);
}
std::size_t Informer::size() const { return state_->store.size(); }
std::uint64_t Informer::lists() const { return state_->lists; }

}  // namespace dibs::client
