#pragma once
// What a store has told its callers, and whether what it shows now agrees with that.
//
// Transactions carry values that occur once, so what a store shows can be traced to the transaction
// that wrote it. One that failed may turn up after the store was opened again, whole, as the next
// revision; then it belongs to what was told.
//
// Not thread-safe.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace dibs::store::testing {

/// One key after a transaction; no value: removed.
struct Effect {
  std::string key;
  std::optional<std::string> value;
  bool operator==(const Effect&) const = default;
};

class Book {
 public:
  struct Version {
    std::string value;
    Revision created = 0;
    Revision modified = 0;
    bool operator==(const Version&) const = default;
  };
  using State = std::map<std::string, Version>;

  explicit Book(Revision first) : last_(first - 1) {}

  // --- what is told; errors say what was wrong with it ---

  Result<> acknowledged(const std::vector<Op>& ops, Revision revision);
  /// With an error from which nobody knows whether it was written.
  void failed(std::vector<Op> ops) { unknown_.push_back(std::move(ops)); }
  /// Somebody has been told of this revision.
  void told(Revision revision) { told_ = std::max(told_, revision); }
  void watched(const std::vector<EventPtr>& events);

  // --- what is shown ---

  /// `opened`: since the last look, so that what had failed may have turned up.
  Result<> check(Store& store, bool opened);

  const State& state() const { return state_; }
  Revision last() const { return last_; }
  /// Up to where a watcher has seen everything.
  Revision seen() const { return seen_; }
  std::size_t acknowledgements() const { return acknowledgements_; }

 private:
  static std::vector<Effect> effects(const std::vector<Op>& ops, const State& state);
  static void apply(State& state, Revision revision, const std::vector<Effect>& effects);
  State state_at(Revision revision) const;
  void enter(Revision revision, std::vector<Effect> effects);
  Result<> adopt(Revision revision, const std::vector<Effect>& shown);
  Result<> check_now(Store& store, bool opened);
  Result<> check_events(Store& store, Revision from, bool may_adopt);
  Result<> check_listing(Store& store, Revision at) const;
  Result<> check_watched() const;

  std::map<Revision, std::vector<Effect>> history_;
  std::vector<std::vector<Op>> unknown_;
  State state_;
  Revision last_;
  Revision told_ = 0;
  Revision seen_ = 0;
  std::map<Revision, std::vector<Effect>> watched_;
  std::size_t acknowledgements_ = 0;
};

}  // namespace dibs::store::testing
