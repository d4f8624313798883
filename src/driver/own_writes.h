#pragma once
// What was written and has not come back through an informer yet.
//
// An informer is behind: who decides by it alone would, right after a write, decide as if it had
// not happened, and give away what is given away already. newest() is the later of what the
// informer knows and what was written here. An entry goes once the informer knows better, at the
// next call for its key: the owner asks for objects that were removed as well.
//
// Not thread-safe: for one worker.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/informer.h"
#include "json/value.h"

namespace dibs::driver {

class OwnWrites {
 public:
  /// `informer` must outlive it.
  explicit OwnWrites(const client::Informer& informer) : informer_(informer) {}

  /// As the server answered it.
  void note(const json::Value& object);
  /// Nothing when the object is gone.
  std::optional<json::Value> newest(const std::string& key);
  /// The objects found by an index, those written last in their new form. The caller looks again
  /// whether they are what he wants.
  std::vector<json::Value> by_index(const std::string& name, const std::string& value);

 private:
  const client::Informer& informer_;
  std::map<std::string, json::Value> written_;  // by key
};

/// The number of a resourceVersion; 0 when it is none.
std::uint64_t revision_of(const json::Value& object);

}  // namespace dibs::driver
