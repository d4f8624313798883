#pragma once
// Keeps a zone true to the API's Services, EndpointSlices and namespaces.

#include <memory>
#include <vector>

#include "client/informer.h"
#include "dns/zone.h"

namespace dibs::dns {

class ZoneWatch {
 public:
  /// All outlive it.
  ZoneWatch(client::Client& client, runtime::Runtime& runtime, Zone& zone);
  ~ZoneWatch();
  ZoneWatch(const ZoneWatch&) = delete;
  ZoneWatch& operator=(const ZoneWatch&) = delete;

  void start();
  /// The zone stays as it is.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::dns
