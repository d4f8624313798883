#pragma once
// From NetworkPolicies, pods and namespaces to chains and sets of nftables.
//
//   map  policy-ingress  { a pod's address : jump to the chain of the policies
//   it is subject to } map  policy-egress set  policy-self     { address .
//   address }: a pod reaches itself set  policy-dns      { address . protocol
//   }: who may ask the cluster's DNS on this machine set  p-<rule> addresses of
//   pods that a rule's selectors name set  b-<rule>        its ranges of
//   addresses set  n-<rule>        { address . protocol . port }: pods' ports
//   that it names chain i-…, e-…       the rules of all policies of a pod:
//   allowed returns, the rest is dropped
//
// Pods that are subject to the same policies share a chain. Only pods of this
// machine are in the maps; all of the cluster's may be in a rule's sets. A
// change of a pod costs a look at each policy, a change of a policy one at each
// pod, and the kernel is told what differs alone.
//
// No I/O. Not thread-safe.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "json/value.h"
#include "proxy/policy_spec.h"

namespace dibs::proxy {

struct PolicyOptions {
  std::string table = {};               // "dibs-1234", of the family inet
  std::string bridge = {};              // the pods'
  std::vector<std::string> nodes = {};  // that are this machine
  std::string dns_address = {};         // the cluster's DNS
  std::string local_dns = {};           // "ip:port" where this machine answers it
};

class PolicyModel {
 public:
  explicit PolicyModel(PolicyOptions options);

  // Objects as the API has them.
  void set_namespace(const json::Value& object);
  void remove_namespace(const json::Value& object);
  void set_pod(const json::Value& object);
  void remove_pod(const json::Value& object);
  void set_policy(const json::Value& object);
  void remove_policy(const json::Value& object);

  /// A transaction that leaves exactly this, whatever was there; and one that
  /// makes it from what whole() or changes() gave last, "" where nothing
  /// differs.
  std::string whole();
  std::string changes();

 private:
  struct Pod {
    PolicyPod as;
    /// What it is in because of each policy: {set, element}.
    std::map<std::string, std::vector<std::pair<std::string, std::string>>> places;
    std::string ingress;  // its chains; "": not subject to any policy
    std::string egress;
  };
  struct Elements {
    std::string type;                    // with flags
    std::map<std::string, int> counted;  // by how many reasons each is there
  };
  struct Chain {
    std::string key;  // direction and policies
    std::string text;
    int pods = 0;
  };

  void add_place(const std::string& set, const std::string& element);
  void drop_place(const std::string& set, const std::string& element);
  void touch(const std::string& set, const std::string& element);
  void place(Pod& pod, const std::string& key, const PolicySpec& policy);
  void unplace(Pod& pod, const std::string& policy_key);
  void place_in_all(Pod& pod);
  void take_away(Pod& pod);
  void choose_chains(const std::string& key, Pod& pod);
  std::string hold_chain(char mark, const std::vector<const PolicySpec*>& policies);
  void let_go(const std::string& chain);
  void enter(const std::string& key, const Pod& pod);
  void leave(const std::string& key, const Pod& pod);
  void write_maps(const std::string& address);
  void open_sets(const PolicySpec& policy);
  void close_sets(const PolicySpec& policy);
  bool may_ask_dns(const PolicySpec& policy, const char* protocol) const;
  json::Value labels_of(const std::string& name_space) const;
  std::string base_chains() const;

  const PolicyOptions options_;
  std::map<std::string, json::Value> namespaces_;  // their labels
  std::map<std::string, Pod> pods_;
  std::map<std::string, PolicySpec> policies_;
  std::map<std::string, std::vector<std::string>> owners_;  // pods by address, the newest last
  std::map<std::string, Elements> sets_;
  std::map<std::string, std::map<std::string, std::string>> maps_;  // map, address: verdict
  std::map<std::string, Chain> chains_;
  std::map<std::string, std::string> chain_names_;  // by their keys
  std::uint64_t last_policy_ = 0;
  std::uint64_t last_chain_ = 0;

  // Since the last transaction: what there was before, of what was touched.
  std::map<std::string, std::map<std::string, bool>> elements_before_;
  std::map<std::string, std::map<std::string, std::string>> verdicts_before_;
  std::map<std::string, bool> sets_before_;
  std::map<std::string, bool> chains_before_;
};

}  // namespace dibs::proxy
