#pragma once
// The slices that one controller keeps: which there are by now, and how they are written.
//
// An informer shows a write a moment late. Who decides by what it shows before that would create
// every slice twice; so what was written is remembered until the informer has it, and a look before
// that says that it is too early. Somebody else's change of a slice leads to its Service's key.
//
// Thread-safe; the same Service is not worked on twice at a time.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "controllers/controller.h"

namespace dibs::controllers {

struct SliceWrites {
  std::vector<Value> create = {};
  std::vector<Value> update = {};  // with the resourceVersion that they are based on
  std::vector<Value> remove = {};

  bool empty() const { return create.empty() && update.empty() && remove.empty(); }
  /// A slice to create takes the place of one to remove where address type and owner are the same:
  /// one write instead of two, and no moment without either.
  void reuse_removed(std::string_view owner_uid);
};

class SliceKeeper {
 public:
  /// `manager`: the value of the label that says whose a slice is.
  SliceKeeper(Environment& environment, Reconciler& reconciler, std::string manager);

  /// Those of a Service, without any that is on its way out; nothing: look again in a moment.
  std::optional<std::vector<Value>> slices_of(const std::string& service);
  /// `creating`: false where the owner is on its way out. A namespace that ends is a success.
  Result<> write(const std::string& service, const SliceWrites& writes, bool creating);
  void forget(const std::string& service);

  /// How soon to look again.
  static constexpr Duration kLookAgain = std::chrono::milliseconds(10);

 private:
  struct Written {
    std::int64_t version = 0;  // 0: removed
    Duration at{0};
  };
  using ByName = std::map<std::string, Written, std::less<>>;

  void seen(const Value& slice);
  void seen_gone(const Value& slice);
  bool is_ours(const Value& slice) const;
  void remember(const std::string& service, const Value& slice, std::int64_t version);

  Environment& environment_;
  Reconciler& reconciler_;
  const std::string manager_;
  client::Informer& slices_;
  Mutex mutex_;
  std::map<std::string, ByName> written_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::controllers
