#pragma once
// What only one object may have (a device, an address, a port), where several servers give it out.
//
// Each server judges a write by what it has in memory, which others may have made old. So the write
// puts, in its own transaction, a key for everything that it takes: the fence of the thing, which
// it expects in the version that its judge has seen. Of two writes that take the same thing the
// later one finds the fence changed by the first, unless its judge has seen the first: then it was
// judged rightly. The one that loses begins again over the newer state, as after any lost race.
//
// There is a fixed number of fences in a family, and a thing has the one that its name is hashed
// to. So whatever two writes share, they share its fence, and the most that a write can take are
// all fences of its family: with its object that stays below the 128 operations that etcd takes in
// a transaction. Two things with one fence cost a needless second judgement, nothing else.
//
// Giving something back needs no fence: who has not seen it yet refuses at worst, and looks again
// before he says so (Objects::is_final).
//
// Thread-safe. Where nobody else writes to the store there are none.

#include <string>
#include <string_view>
#include <vector>

#include "server/write.h"
#include "store/store.h"

namespace dibs::server {

/// Everything of fences lies below.
inline constexpr std::string_view kFencePrefix = "/registry.dibs/fences/";

class Fences {
 public:
  static constexpr unsigned kCount = 96;

  /// `family` tells the things of one kind from those of others ("devices").
  Fences(store::Store& store, std::string_view family)
      : store_(store), family_(family), shared_(store.shared()) {}

  bool are_needed() const { return shared_; }
  /// What a judge reads first: he sees at least what was there at this revision, if he looks at the
  /// state after this call.
  store::Revision before_judging() const { return shared_ ? store_.revision() : 0; }
  /// Puts the fences of what a write takes into it. `seen` is of before_judging(). False: somebody
  /// has taken something like it after that, which the judge may not have seen: judge again.
  bool guard(Write& write, const std::vector<std::string>& things, store::Revision seen) const;

  std::string key_of(std::string_view thing) const;

 private:
  store::Store& store_;
  const std::string family_;
  const bool shared_;
};

}  // namespace dibs::server
