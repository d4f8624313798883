#include "client/transport.h"

namespace dibs::client {

json::Pool& Transport::trees() {
  std::call_once(trees_made_, [this] { trees_ = std::make_unique<json::Pool>(); });
  return *trees_;
}

}  // namespace dibs::client
