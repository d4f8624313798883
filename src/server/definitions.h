#pragma once
// CustomResourceDefinitions at work: what they add to the served resources, and how they go away.
//
// Follows the stored definitions. A new one is first served, then said to be Established, so that
// who waits for the condition can use it at once; where several servers do this over one store, it
// is served when it is said so, and whoever asks for what is not served makes the server look
// again. One that is being deleted takes its objects with it before it goes; until then no more can
// be made. Watches end when what they show changes its definition or loses it. One task at a time
// does all this; the served set is replaced as a whole.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/conversion.h"
#include "server/definition_names.h"
#include "server/fences.h"
#include "server/objects.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

class Definitions {
 public:
  Definitions(runtime::Runtime& runtime, store::Store& store, Objects& objects,
              ResourceTable& resources, std::vector<ResourcePtr> builtin, Conversions& conversions);
  ~Definitions();

  /// Called with the storage prefix of objects whose definition was changed or is gone. To be set
  /// before start().
  void on_end(std::function<void(const std::string& prefix)> end) { end_ = std::move(end); }

  /// Called when other resources are served than before. To be set before start().
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  /// Serves what is stored. Errors: of the store.
  Result<> load();
  void start();
  void stop();
  /// Serves what other servers have established and this one has not heard of yet.
  void look_again();

 private:
  struct Entry;
  /// Null where it cannot be read.
  std::shared_ptr<Entry> known_from(const store::Record& record) const;
  void wake();
  void follow();
  bool start_over();
  void take(const std::string& key, const store::Record* now);
  void settle(const std::string& key, const Value& definition);
  bool may_serve(const Value& definition) const DIBS_REQUIRES(mutex_);
  /// Gives the definition the names it can have and says so in its status.
  void settle_names(const std::string& key, const Value& definition);
  NameVerdict judge_known(const Value& definition);
  NameVerdict judge_stored(const Value& definition, Write& write);
  /// Names may have become free for the others of the group.
  void settle_group(const Value& definition);
  void finish_deletion(const std::string& key, const Value& definition);
  /// How many objects of the definition are still there.
  std::size_t delete_objects(const Value& definition);
  /// Errors: not_found when it is gone.
  Result<> write(const std::string& key, const Value& definition, std::string_view subresource,
                 const std::function<void(Value&, Write&)>& change);
  void publish() DIBS_REQUIRES(mutex_);
  /// All definitions of the group, as they were last seen or written.
  std::vector<Value> group_of(const Value& definition) const DIBS_REQUIRES(mutex_);

  runtime::Runtime& runtime_;
  store::Store& store_;
  Objects& objects_;
  ResourceTable& resources_;
  const Fences fences_;  // of names, by group
  std::vector<ResourcePtr> builtin_;
  Conversions& conversions_;
  ResourcePtr resource_;  // customresourcedefinitions itself
  std::function<void(const std::string& prefix)> end_;
  std::function<void()> changed_;

  Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Entry>> entries_ DIBS_GUARDED_BY(mutex_);  // by key
  std::uint64_t generation_ DIBS_GUARDED_BY(mutex_) = 0;
  std::vector<runtime::TimerId> timers_ DIBS_GUARDED_BY(mutex_);
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::server
