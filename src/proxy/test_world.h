#pragma once
// A machine with two nodes and random Services, for tests.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/strings.h"
#include "proxy/rules.h"

namespace dibs::proxy::test {

inline Machine machine(unsigned nodes = 2) {
  Machine out;
  for (unsigned i = 0; i < nodes; ++i) out.nodes[cat("node-", i)] = i % 2 == 0 ? "a" : "b";
  out.pods = *Ipv4Range::parse("10.130.0.0/16");
  out.services = *Ipv4Range::parse("10.0.0.0/24");
  out.bridge = "dibs-1";
  return out;
}

inline TableOptions table(unsigned nodes = 2) {
  TableOptions out;
  out.table = "dibs-1";
  out.machine = machine(nodes);
  return out;
}

inline Backend backend(const std::string& address, const std::string& node, int port = 8080) {
  Backend out;
  out.address = address;
  out.port = port;
  out.node = node;
  out.ready = out.serving = true;
  return out;
}

/// Random Services over few addresses.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
  bool chance() { return below(2) == 0; }

  ServiceView service(unsigned index) {
    ServiceView out;
    out.cluster_ip = cat("10.0.0.", 20 + index);
    if (below(3) == 0) out.external_ips.push_back(cat("192.0.2.", 100 + index));
    if (below(3) == 0) out.balancer_ips.push_back(cat("192.0.2.", 200 + index));
    if (below(4) == 0) out.balancer_sources = {"192.0.2.0/26"};
    out.internal_local = below(3) == 0;
    out.external_local = below(3) == 0;
    if (below(4) == 0) out.sticky_seconds = 10;
    const unsigned ports = 1 + below(2);
    for (unsigned i = 0; i < ports; ++i) {
      ServicePort port{i == 0 ? "tcp" : "udp", 80, 0, {}};
      if (chance()) port.node_port = static_cast<int>(30000 + index * 10 + i);
      for (unsigned n = below(5); n > 0; --n) {
        Backend one = backend(cat("10.130.0.", n), cat("node-", below(3)), 8080);
        one.ready = below(4) != 0;
        one.serving = one.ready || chance();
        one.terminating = !one.ready && chance();
        if (chance()) one.for_zones = {chance() ? "a" : "b"};
        if (below(4) == 0) one.for_nodes = {cat("node-", below(2))};
        port.backends.push_back(one);
      }
      std::reverse(port.backends.begin(), port.backends.end());
      out.ports.push_back(port);
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

}  // namespace dibs::proxy::test
