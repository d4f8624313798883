#pragma once
// The state of a store at one revision, key by key: what is copied, backed up and checked.
//
// It is what lies under "/registry/". What servers tell each other is no part of it: fences and
// whether a store is whole ("/registry.dibs/"), and which of them live.
//
// For one thread.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace dibs::store {

inline constexpr std::string_view kObjects = "/registry/";

/// Which servers live.
inline constexpr std::string_view kServers = "/registry/masterleases/";

inline bool is_of_state(std::string_view key) {
  return key.starts_with(kObjects) && !key.starts_with(kServers);
}

/// One key as it is.
struct Item {
  std::string key;
  std::string value;
  Revision created = 0;
  Revision modified = 0;
};

class State {
 public:
  virtual ~State() = default;
  virtual Revision revision() const = 0;
  /// The next key, in byte order; false behind the last.
  virtual Result<bool> next(Item& item) = 0;
  /// From the first key again.
  virtual Result<> rewind() = 0;
};

/// As it is now. It stays so, whatever is written or forgotten later. The store must outlive it.
Result<std::unique_ptr<State>> state_of(const Store& store);

}  // namespace dibs::store
