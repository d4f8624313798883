#pragma once
// Keys in memory and keys on etcd.
//
//   in memory              on etcd
//   /registry/X            PREFIX/X, or PREFIX.dibs/registry/X for what is kept apart (AtRest)
//   /registry.dibs/X       PREFIX.dibs/X
//
// All of it lies in one range, since '.' is the byte before '/'. What else lies there is not ours
// and left alone.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::store::etcd {

class Keys {
 public:
  /// `prefix` as in --etcd-prefix: a '/' before it and none behind it are added and taken away.
  explicit Keys(std::string_view prefix);

  /// Errors: invalid for a key that is under neither folder.
  static Result<> check(std::string_view key);
  std::string on_etcd(std::string_view key, bool apart) const;

  struct Place {
    std::string key;  // in memory
    bool apart = false;
  };
  /// Nothing for what is not ours, and for the three below.
  std::optional<Place> in_memory(std::string_view key) const;

  /// Of the range.
  const std::string& first() const { return first_; }
  const std::string& end() const { return end_; }
  /// Written to see the watch come by.
  const std::string& marker() const { return marker_; }
  /// What every write compares (write.h).
  const std::string& barrier() const { return barrier_; }
  /// Where removals say whose they are (write.h).
  const std::string& hand() const { return hand_; }
  /// Read to see whether anybody answers.
  const std::string& probe() const { return probe_; }

 private:
  const std::string public_;   // "PREFIX/"
  const std::string private_;  // "PREFIX.dibs/"
  const std::string apart_;    // "PREFIX.dibs/registry/"
  const std::string first_;
  const std::string end_;
  const std::string marker_;
  const std::string barrier_;
  const std::string hand_;
  const std::string probe_;
};

/// kube-apiserver's, and so without the prefix.
inline constexpr std::string_view kCompactKey = "compact_rev_key";

}  // namespace dibs::store::etcd
