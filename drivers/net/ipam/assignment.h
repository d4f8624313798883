#pragma once
// One assign() under way: what the pod asks for, which pools may serve it, and what was taken so
// far. Used by Ipam alone; one thread each.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/net/ipam/catalog.h"
#include "drivers/net/ipam/endpoints.h"
#include "drivers/net/ipam/ipam.h"
#include "drivers/net/ipam/ledger.h"

namespace dibs::drivers::net {

/// What an assignment works with.
struct Tools {
  Ledger& ledger;
  Endpoints& endpoints;
  const IpamOptions& options;
};

struct PodJob {
  json::Value pod;
  std::string name_space, name, uid;
  std::string key;  // "ns/name"
  std::string node;
  Application application;
  std::shared_ptr<const PoolCatalog::Snapshot> pools;
  Setting setting;
  std::vector<Route> routes;  // of the pod's annotation
};

class Assignment {
 public:
  Assignment(const Tools& tools, const PodJob& job, const std::vector<NicAsk>& nics)
      : tools_(tools), job_(job), nics_(nics) {}

  /// All of it, however often others get in between.
  Result<std::vector<Assigned>> run();
  /// Writes nothing.
  Result<> check(const Endpoint& endpoint);

 private:
  struct Plan {
    const NicAsk* nic;
    Candidates candidates;
  };

  /// Nothing when another one was faster: to be done again.
  Result<std::optional<std::vector<Assigned>>> once();
  Result<std::vector<Plan>> plan(const Endpoint& endpoint, bool all);
  Result<> check_room(const std::vector<Plan>& plans, const Endpoint& endpoint, bool fresh);
  bool is_mine(const Endpoint& endpoint) const;
  bool is_current(const Endpoint& endpoint) const;
  bool keeps(const Endpoint& endpoint) const;
  /// The endpoint for this pod, without new addresses. False: again.
  Result<bool> claim(Endpoint& endpoint, std::vector<Plan>& plans);
  Result<Assigned> take(const Plan& plan, const Endpoint& endpoint);
  Result<Held> take_one(const Plan& plan, int version, const std::vector<std::string>& pools,
                        const Endpoint& endpoint);
  Assigned describe(const Plan& plan, const std::vector<Held>& held) const;
  std::vector<Ip> in_use(const Endpoint& endpoint, const std::string& pool) const;
  bool has_all(const Endpoint& endpoint) const;
  std::vector<Assigned> asked_of(const Endpoint& endpoint) const;
  /// Gives back what was taken and is not named by `endpoint`.
  void tidy(const Endpoint* endpoint);

  const Tools& tools_;
  const PodJob& job_;
  const std::vector<NicAsk>& nics_;
  std::vector<Taken> taken_;  // over all tries
  bool made_ = false;         // the endpoint is ours, and empty
};

/// Takes the endpoint away, then the records of what it named. False when another one was faster.
Result<bool> give_up(const Tools& tools, const Endpoint& endpoint);

}  // namespace dibs::drivers::net
