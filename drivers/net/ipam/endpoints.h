#pragma once
// SpiderEndpoints on the server: read, written at the version they were read, taken away.
//
// A write that another one got ahead of is no error but `false` or nothing: whoever called reads
// again and decides again.

#include <optional>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "drivers/net/ipam/endpoint.h"

namespace dibs::drivers::net {

class Endpoints {
 public:
  explicit Endpoints(client::Client& api) : api_(api) {}

  /// `object` is null where there is none.
  Result<Endpoint> read(std::string_view name_space, std::string_view name);
  /// As the server has it then; nothing when another one was faster.
  Result<std::optional<Endpoint>> write(const Endpoint& endpoint, const json::Value& pod,
                                        const Application& application);
  /// Takes it away with what it names, whatever it was. False when another one was faster.
  Result<bool> remove(const Endpoint& endpoint);
  /// Changes it so that nobody who has read it before can write it. False as above.
  Result<bool> fence(const Endpoint& endpoint, std::string_view mark);

 private:
  client::Client& api_;
};

}  // namespace dibs::drivers::net
