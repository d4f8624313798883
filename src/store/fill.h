#pragma once
// Makes a store hold a given state, so that it can be told whether that came to its end.
//
// The steps: a mark is put under kUnfinished, which servers do not start on; the revision is
// brought above that of the state, so that no client sees versions go back; the difference between
// what is there and the state is written in groups; whoever called reads all of it back from where
// it lies (compare()) and takes the mark away (finish()). Whatever ends this in the middle leaves
// the mark, and the same again ends what was begun.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/state.h"
#include "store/store.h"

namespace dibs::store {

/// There while a store is being filled; its value is JSON that says by whom.
inline constexpr std::string_view kUnfinished = "/registry.dibs/unfinished";

struct FillProgress {
  std::string_view what;  // "revisions", "keys"
  std::size_t done = 0;
  std::size_t all = 0;  // 0: not known
};

struct FillOptions {
  std::string mark;        // value of kUnfinished
  bool resume = false;     // go on with what was left unfinished
  bool overwrite = false;  // replace what is there
  /// Bring the store's revision above that of the state.
  bool advance = true;
  /// Whether two values mean the same, where their bytes differ; none: they do not.
  std::function<bool(std::string_view, std::string_view)> same = {};
  /// Op::lifetime of a key.
  std::function<std::optional<Duration>(std::string_view key)> lifetime = {};
  std::function<void(const FillProgress&)> progress = {};
};

struct FillCount {
  std::size_t keys = 0;     // of the state
  std::size_t written = 0;  // that were not there, or were others
  std::size_t removed = 0;
};

/// Leaves the mark. Errors: already_exists, when there is something and the options do not allow
/// that; of the store and of the state.
Result<FillCount> fill(Store& store, State& state, const FillOptions& options);

/// Errors: internal, naming the first key that differs.
Result<FillCount> compare(const Store& store, State& state, const FillOptions& options);

/// Takes the mark away, and forgets how all came there.
Result<> finish(Store& store);

}  // namespace dibs::store
