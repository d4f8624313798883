#pragma once
// A NetworkPolicy as it is enforced: what of an object counts, with names that
// say what is in it.
//
// Whatever is made from a policy has its `id` in its name, and a policy that
// changes gets another: a chain or a set never changes its meaning.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::proxy {

/// A pod as policies see it.
struct PolicyPod {
  struct Port {
    std::string name;
    std::string protocol;  // "tcp"
    std::int64_t number = 0;
  };
  std::string name_space = {};
  json::Value labels = {};
  std::string address = {};  // IPv4
  std::vector<Port> ports = {};
  bool local = false;  // runs here
};

/// Nothing where policies have no say: on the host's network, without an IPv4
/// address yet, or over.
std::optional<PolicyPod> read_policy_pod(const json::Value& pod,
                                         const std::vector<std::string>& nodes);

struct PolicyPort {
  std::string protocol = "tcp";
  std::int64_t first = 0;  // 0: all of the protocol
  std::int64_t last = 0;
  std::string name = {};  // of pods' ports, in place of a number
};

struct PolicyPeer {
  json::Value pods = {};        // a selector; null: all
  json::Value namespaces = {};  // a selector; null: the policy's own
};

struct PolicyRule {
  std::string id = {};  // of its sets
  std::vector<PolicyPort> ports = {};
  bool any_port = false;
  bool any_peer = false;
  std::vector<PolicyPeer> peers = {};
  /// "10.0.0.0-10.0.0.9", of blocks less their exceptions, apart from each
  /// other and in order.
  std::vector<std::string> ranges = {};
  bool has_ranges = false;

  bool has_names() const;
  /// A pod of a namespace with these labels is among the peers, by selectors.
  bool selects(const PolicyPod& pod, const json::Value& namespace_labels,
               std::string_view own_namespace) const;
  bool covers_address(std::string_view address) const;
  bool covers_port(std::string_view protocol, std::int64_t number, std::string_view name) const;
};

struct PolicySpec {
  std::string name_space = {};
  json::Value pods = {};  // the selector of who it is for
  bool for_ingress = false;
  bool for_egress = false;
  std::vector<PolicyRule> ingress = {};
  std::vector<PolicyRule> egress = {};
  std::string id = {};
  json::Value spec = {};  // all of it

  static PolicySpec read(const json::Value& policy, std::string id);
  bool is_for(const PolicyPod& pod) const;
};

}  // namespace dibs::proxy
