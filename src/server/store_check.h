#pragma once
// Whether the objects of a store are what servers expect to find there: each readable, at the key
// of its kind, namespace and name; no device given to two claims, no address or node port to two
// services, no uid to two objects.
//
// For one thread.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/plugins/device_index.h"
#include "server/resource.h"
#include "store/state.h"

namespace dibs::server {

class StoreCheck {
 public:
  using Fault = std::function<void(std::string)>;

  /// `builtin`: of every release, so that what an older one has stored is known.
  StoreCheck(const std::vector<ResourcePtr>& builtin, Fault fault);

  /// Reads the state twice: definitions of custom kinds first. Errors: of reading.
  Result<> run(store::State& state);

  std::size_t objects() const { return objects_; }

 private:
  struct Kind {
    std::string group;
    std::string kind;
    bool namespaced = false;
  };

  Result<> learn_definitions(store::State& state);
  void check(const store::Item& item);
  void check_kind(const store::Item& item, const Value& object);
  void check_devices(const store::Item& item, const Value& claim);
  void check_service(const store::Item& item, const Value& service);
  /// `what` is one object's alone.
  void take(const std::string& what, const store::Item& item);

  const Fault fault_;
  std::map<std::string, Kind, std::less<>> kinds_;  // by the prefix of their keys
  std::map<std::string, std::string> owners_;       // what only one may have, and whose it is
  DeviceIndex devices_;
  std::vector<std::pair<std::string, Value>> claims_;
  std::size_t objects_ = 0;
};

}  // namespace dibs::server
