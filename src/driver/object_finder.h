#pragma once
// Objects that are named by group, kind and name, as the references to parameters of classes and
// claims do: which version and resource that means is found out by discovery.
//
// A kind that was found is remembered until an object of it is missing. Thread-safe.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "client/client.h"
#include "json/value.h"

namespace dibs::driver {

struct ParameterKind {
  std::string group = {};  // "": core
  std::string kind = {};
};

/// A kind as the server serves it.
struct ServedKind {
  client::Gvr gvr = {};
  bool namespaced = false;
};

class ObjectFinder {
 public:
  /// `api` must outlive it.
  explicit ObjectFinder(client::Client& api) : api_(api) {}

  /// Errors: not_found when there is no such kind or object; the server's.
  Result<json::Value> get(const ParameterKind& kind, std::string_view name_space,
                          std::string_view name);
  /// Errors: not_found; the server's.
  Result<ServedKind> kind(const ParameterKind& kind);

  /// The object that a parametersRef names, null where there is no reference. `name_space` is that
  /// of the claim, or of the reference itself for a class. A reference to any other than `kinds` is
  /// refused: whoever makes claims must not have the driver read what he may not.
  Result<json::Value> parameters(const json::Value& reference, std::string_view name_space,
                                 const std::vector<ParameterKind>& kinds);

 private:
  Result<ServedKind> discover(const ParameterKind& kind);

  client::Client& api_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, ServedKind> known_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::driver
