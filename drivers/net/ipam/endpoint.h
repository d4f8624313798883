#pragma once
// SpiderEndpoint: the addresses of one pod. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/ipam/applications.h"
#include "drivers/net/model/ip_pool.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// One interface with its addresses: an entry of status.current.ips.
struct Assigned {
  std::string interface;
  std::string ipv4;  // "172.18.30.131/16"
  std::string ipv4_pool;
  std::string ipv4_gateway;
  std::string ipv6;
  std::string ipv6_pool;
  std::string ipv6_gateway;
  bool clean_gateway = false;
  std::vector<Route> routes;
  friend bool operator==(const Assigned&, const Assigned&) = default;
};

struct Endpoint {
  std::string name_space;
  std::string name;  // the pod's
  std::string pod_uid;
  std::string node;
  std::vector<Assigned> nics;
  std::string owner_kind;  // "Pod", "Deployment", "StatefulSet", …
  std::string owner_name;
  json::Value object;  // as it was read, with what is not above

  bool terminating() const;
  /// The interface of this name; null where there is none.
  const Assigned* nic(std::string_view interface) const;
};

/// What cannot be read of an entry is left out.
Endpoint parse_endpoint(const json::Value& object);
/// The object with status.current of `endpoint`; a new one where `endpoint.object` is null, with
/// the finalizer, and owned by the pod unless it is one of a StatefulSet.
json::Value to_object(const Endpoint& endpoint, const json::Value& pod,
                      const Application& application);

/// An address of an endpoint and the pool it is of.
struct Held {
  std::string pool;
  Ip ip;
  friend auto operator<=>(const Held&, const Held&) = default;
};
std::vector<Held> held_by(const Assigned& nic);
std::vector<Held> held_by(const std::vector<Assigned>& nics);

/// Nothing of the pod runs any more, or will again. One that is being deleted may go on as long as
/// it is there: its node may be away, and its interface still answers.
bool has_ended(const json::Value& pod);
/// May the pod be given addresses? Not when it is being deleted, or has ended.
bool is_alive(const json::Value& pod);

}  // namespace dibs::drivers::net
