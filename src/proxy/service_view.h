#pragma once
// A Service with its endpoints, as rules need it: read from API objects once, everything that
// counts for nothing left out. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ipv4.h"
#include "json/value.h"

namespace dibs::proxy {

struct Backend {
  std::string address = {};
  int port = 0;
  std::string node = {};
  std::string pod = {};  // NAMESPACE/NAME; "": it is no pod's
  std::string pod_uid = {};
  std::vector<std::string> for_zones = {};  // hints
  std::vector<std::string> for_nodes = {};
  bool ready = false;
  bool serving = false;
  bool terminating = false;

  /// As elements of maps have it: "10.1.0.5 . 80".
  std::string element() const;
  friend bool operator==(const Backend&, const Backend&) = default;
};

struct ServicePort {
  std::string protocol = {};  // "tcp", "udp", "sctp"
  int port = 0;
  int node_port = 0;
  std::vector<Backend> backends = {};  // by address and port, each once
};

struct ServiceView {
  std::string cluster_ip = {};  // "": nothing is to be done
  std::vector<std::string> external_ips = {};
  std::vector<std::string> balancer_ips = {};
  std::vector<std::string> balancer_sources = {};  // ranges; none: anybody
  bool internal_local = false;
  bool external_local = false;
  std::int64_t sticky_seconds = 0;  // 0: no session affinity
  int health_port = 0;
  std::vector<ServicePort> ports = {};
};

/// What of the machine it is about.
struct Machine {
  /// Nodes here, each with its zone ("": none).
  std::map<std::string, std::string> nodes = {};
  std::string bridge = {};
  Ipv4Range pods = {};
  Ipv4Range services = {};
  /// Ranges of Services beside that one (ServiceCIDR).
  std::vector<Ipv4Range> more_services = {};
};

/// Addresses that no packet may be sent to or caught from by a Service: the machine's own loopback,
/// link-local (where clouds have their secrets), multicast.
bool is_usable(const std::string& address);

/// `slices`: of this Service, in any order. One that is not to be served has no cluster_ip.
ServiceView read_service(const json::Value& service, const std::vector<json::Value>& slices,
                         const Machine& machine);
/// The name of the Service that a slice is of, "" for none, or for one that is not to be served.
std::string service_of(const json::Value& slice);

/// Who may answer a packet that may go to any node. `node`: of the sender; "": not of one here.
std::vector<Backend> pick_anywhere(const std::vector<Backend>& backends, const std::string& node,
                                   const Machine& machine);
/// Of those on one node; "": on any of the machine's.
std::vector<Backend> pick_local(const std::vector<Backend>& backends, const std::string& node,
                                const Machine& machine);

}  // namespace dibs::proxy
