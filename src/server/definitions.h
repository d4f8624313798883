#pragma once
// CustomResourceDefinitions at work: what they add to the served resources, and how they go away.
//
// Follows the stored definitions. A new one is first served, then said to be Established, so that
// who waits for the condition can use it at once. One that is being deleted takes its objects with
// it before it goes; until then no more can be made. Watches end when what they show changes its
// definition or loses it. One task at a time does all this; the served set is replaced as a whole.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/objects.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

class Definitions {
 public:
  Definitions(runtime::Runtime& runtime, store::Store& store, Objects& objects,
              ResourceTable& resources, std::vector<ResourcePtr> builtin);
  ~Definitions();

  /// Called with the storage prefix of objects whose definition was changed or is gone. To be set
  /// before start().
  void on_end(std::function<void(const std::string& prefix)> end) { end_ = std::move(end); }

  /// Serves what is stored. Errors: of the store.
  Result<> load();
  void start();
  void stop();

 private:
  struct Entry;
  void wake();
  void follow();
  void take(const store::Event& event);
  void settle(const std::string& key, const Value& definition);
  /// Gives the definition the names it can have and says so in its status.
  void settle_names(const std::string& key, const Value& definition);
  /// Names may have become free for the others of the group.
  void settle_group(const Value& definition);
  void finish_deletion(const std::string& key, const Value& definition);
  /// How many objects of the definition are still there.
  std::size_t delete_objects(const Value& definition);
  /// Errors: not_found when it is gone.
  Result<> write(const std::string& key, const Value& definition, std::string_view subresource,
                 const std::function<void(Value&)>& change);
  void publish() DIBS_REQUIRES(mutex_);
  /// All definitions of the group, as they were last seen or written.
  std::vector<Value> group_of(const Value& definition) const DIBS_REQUIRES(mutex_);

  runtime::Runtime& runtime_;
  store::Store& store_;
  Objects& objects_;
  ResourceTable& resources_;
  std::vector<ResourcePtr> builtin_;
  ResourcePtr resource_;  // customresourcedefinitions itself
  std::function<void(const std::string& prefix)> end_;

  Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Entry>> entries_ DIBS_GUARDED_BY(mutex_);  // by key
  std::uint64_t generation_ DIBS_GUARDED_BY(mutex_) = 0;
  std::vector<runtime::TimerId> timers_ DIBS_GUARDED_BY(mutex_);
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
