#pragma once
// A local copy of a resource, kept true by list and watch.
//
// Life: start() lists, fills the store and calls `added` for everything; from then on a watch goes
// on from the list's revision. A watch that ends is taken up where it stopped. When the server no
// longer has that revision (410), the informer lists again and tells handlers only the difference.
// Failures wait, longer each time, and never lose the store's contents.
//
// All work runs on the runtime's executor, one task at a time, so handlers see events in order and
// the store holds the object already when they are called. Reading is thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/object_store.h"
#include "runtime/runtime.h"

namespace dibs::client {

struct InformerOptions {
  Gvr gvr = {};
  std::string name_space = {};  // "": all
  std::string label_selector = {};
  std::string field_selector = {};
  /// Objects are PartialObjectMetadata: enough for who cares about owners and deletions only.
  bool metadata_only = false;
  /// What of an object is kept in memory and handed on; all of it when empty. Must leave the
  /// name, namespace, uid and resourceVersion.
  std::function<json::Value(const json::Value& object)> keep = {};
  /// How often `updated(x, x)` is called for every object; 0: never.
  Duration resync{0};
};

struct InformerHandlers {
  /// `initial`: found by the first list.
  std::function<void(const json::Value& object, bool initial)> added = {};
  std::function<void(const json::Value& before, const json::Value& after)> updated = {};
  /// The last state known.
  std::function<void(const json::Value& object)> removed = {};
};

class Informer {
 public:
  /// `client` and `runtime` must outlive it.
  Informer(Client& client, runtime::Runtime& runtime, InformerOptions options);
  /// As stop().
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void add_index(const std::string& name, ObjectStore::Index index);
  /// After the start: first gets `added` for every object there is.
  void add_handler(InformerHandlers handlers);

  void start();
  /// No handler runs when it returns, except one that called it.
  void stop();

  /// The first list is in the store and was handed to the handlers.
  bool synced() const;
  /// Blocks a real thread. False at the timeout.
  bool wait_until_synced(Duration timeout) const;

  std::optional<json::Value> get(const std::string& key) const;
  std::vector<json::Value> list() const;
  std::vector<json::Value> by_index(const std::string& name, const std::string& value) const;
  std::size_t size() const;
  /// Lists so far, the first included: more than one means that revisions were lost.
  std::uint64_t lists() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::client
