#pragma once
// CustomResourceDefinitions at work: what they add to the served resources, and how they go away.
//
// Follows the stored definitions. A new one is first served, then said to be Established, so that
// who waits for the condition can use it at once. One that is being deleted takes its objects with
// it before it goes. One task at a time does all this; the served set is replaced as a whole.

#include <memory>
#include <mutex>
#include <vector>

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
  void finish_deletion(const Value& definition);
  Result<> write(const Value& definition, std::string_view subresource,
                 const std::function<void(Value&)>& change);
  void publish();
  /// Why the names cannot be had, or "".
  std::string name_conflict(const Value& definition) const;

  runtime::Runtime& runtime_;
  store::Store& store_;
  Objects& objects_;
  ResourceTable& resources_;
  std::vector<ResourcePtr> builtin_;
  ResourcePtr resource_;  // customresourcedefinitions itself

  std::mutex mutex_;
  std::unique_ptr<store::Watch> watch_;                    // guarded by mutex_
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by key; guarded by mutex_
  std::uint64_t generation_ = 0;                           // guarded by mutex_
  std::vector<runtime::TimerId> timers_;                   // guarded by mutex_
  bool stopped_ = false;                                   // guarded by mutex_
};

}  // namespace dibs::server
