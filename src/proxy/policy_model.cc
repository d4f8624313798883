#include "proxy/policy_model.h"

#include <algorithm>

#include "base/strings.h"
#include "client/client.h"

namespace dibs::proxy {

using json::Value;

namespace {

constexpr const char* kIngress = "policy-ingress";
constexpr const char* kEgress = "policy-egress";
constexpr const char* kSelf = "policy-self";
constexpr const char* kDns = "policy-dns";
constexpr std::int64_t kDnsPort = 53;

/// Lines of a chain that let a rule's traffic pass.
void append_rule(std::string& out, const PolicyRule& rule, const char* peer) {
  std::vector<std::string> peers;
  if (rule.any_peer) peers.emplace_back();
  if (!rule.peers.empty()) peers.push_back(cat(peer, " @p-", rule.id, ' '));
  if (rule.has_ranges) peers.push_back(cat(peer, " @b-", rule.id, ' '));
  std::vector<std::string> ports;
  if (rule.any_port) ports.emplace_back();
  for (const PolicyPort& port : rule.ports) {
    if (!port.name.empty()) continue;
    std::string text = cat("meta l4proto ", port.protocol, ' ');
    if (port.first > 0) append(text, "th dport ", port.first, '-', port.last, ' ');
    ports.push_back(std::move(text));
  }
  if (rule.has_names()) {
    ports.push_back(cat("ip daddr . meta l4proto . th dport @n-", rule.id, ' '));
  }
  for (const auto& from : peers) {
    for (const auto& to : ports) append(out, "    ", from, to, "return\n");
  }
}

std::string elements_text(const std::vector<std::string>& elements) {
  return cat("{ ", join(elements, ", "), " }");
}

}  // namespace

PolicyModel::PolicyModel(PolicyOptions options) : options_(std::move(options)) {
  sets_[kSelf].type = "type ipv4_addr . ipv4_addr;";
  sets_[kDns].type = "type ipv4_addr . inet_proto;";
  maps_[kIngress];
  maps_[kEgress];
}

Value PolicyModel::labels_of(const std::string& name_space) const {
  const auto found = namespaces_.find(name_space);
  return found == namespaces_.end() ? Value::object() : found->second;
}

void PolicyModel::set_namespace(const Value& object) {
  const std::string name(client::name_of(object));
  const auto known = namespaces_.find(name);
  if (known != namespaces_.end() && known->second == object["metadata"]["labels"]) return;
  namespaces_[name] = object["metadata"]["labels"];
  for (auto& [key, pod] : pods_) {
    // The cluster's DNS is of a namespace, too.
    if (pod.as.name_space == name || name == "kube-system") place_in_all(pod);
  }
}

void PolicyModel::remove_namespace(const Value& object) {
  namespaces_.erase(std::string(client::name_of(object)));
}

void PolicyModel::set_pod(const Value& object) {
  const std::string key = client::key_of(object);
  auto read = read_policy_pod(object, options_.nodes);
  if (!read) return remove_pod(object);
  const auto known = pods_.find(key);
  if (known != pods_.end()) take_away(known->second), leave(key, known->second);
  Pod& pod = pods_[key];
  pod.as = std::move(*read);
  enter(key, pod);
  place_in_all(pod);
  choose_chains(key, pod);
}

void PolicyModel::remove_pod(const Value& object) {
  const std::string key = client::key_of(object);
  const auto known = pods_.find(key);
  if (known == pods_.end()) return;
  Pod gone = std::move(known->second);
  take_away(gone);
  leave(key, gone);
  pods_.erase(known);
  let_go(gone.ingress);
  let_go(gone.egress);
  write_maps(gone.as.address);
}

void PolicyModel::enter(const std::string& key, const Pod& pod) {
  owners_[pod.as.address].push_back(key);
}

void PolicyModel::leave(const std::string& key, const Pod& pod) {
  auto& owners = owners_[pod.as.address];
  std::erase(owners, key);
  if (owners.empty()) owners_.erase(pod.as.address);
  write_maps(pod.as.address);
}

void PolicyModel::set_policy(const Value& object) {
  const std::string key = client::key_of(object);
  const auto known = policies_.find(key);
  if (known != policies_.end()) {
    if (known->second.spec == object["spec"]) return;
    remove_policy(object);
  }
  const PolicySpec& policy = policies_[key] =
      PolicySpec::read(object, std::to_string(++last_policy_));
  open_sets(policy);
  for (auto& [pod_key, pod] : pods_) {
    place(pod, key, policy);
    if (pod.as.local && policy.is_for(pod.as)) choose_chains(pod_key, pod);
  }
}

void PolicyModel::remove_policy(const Value& object) {
  const std::string key = client::key_of(object);
  const auto known = policies_.find(key);
  if (known == policies_.end()) return;
  const PolicySpec gone = std::move(known->second);
  policies_.erase(known);
  for (auto& [pod_key, pod] : pods_) {
    unplace(pod, key);
    if (pod.as.local && gone.is_for(pod.as)) choose_chains(pod_key, pod);
  }
  close_sets(gone);
}

void PolicyModel::open_sets(const PolicySpec& policy) {
  const auto open = [&](const std::string& name, const char* type) {
    sets_before_.emplace(name, sets_.contains(name));
    sets_[name].type = type;
  };
  for (const auto* rules : {&policy.ingress, &policy.egress}) {
    for (const PolicyRule& rule : *rules) {
      if (!rule.peers.empty()) open(cat("p-", rule.id), "type ipv4_addr;");
      if (rule.has_ranges) open(cat("b-", rule.id), "type ipv4_addr; flags interval;");
      if (rule.has_names()) {
        open(cat("n-", rule.id), "type ipv4_addr . inet_proto . inet_service;");
      }
      for (const auto& range : rule.ranges) add_place(cat("b-", rule.id), range);
    }
  }
}

void PolicyModel::close_sets(const PolicySpec& policy) {
  for (const auto* rules : {&policy.ingress, &policy.egress}) {
    for (const PolicyRule& rule : *rules) {
      for (const char* mark : {"p-", "b-", "n-"}) {
        const std::string name = cat(mark, rule.id);
        if (!sets_.contains(name)) continue;
        sets_before_.emplace(name, true);
        sets_.erase(name);
        elements_before_.erase(name);
      }
    }
  }
}

void PolicyModel::place_in_all(Pod& pod) {
  for (const auto& [key, policy] : policies_) place(pod, key, policy);
}

void PolicyModel::take_away(Pod& pod) {
  while (!pod.places.empty()) unplace(pod, pod.places.begin()->first);
}

void PolicyModel::place(Pod& pod, const std::string& key, const PolicySpec& policy) {
  unplace(pod, key);
  std::vector<std::pair<std::string, std::string>> places;
  const std::string& address = pod.as.address;
  const bool subject = pod.as.local && policy.is_for(pod.as);
  const auto labels = labels_of(pod.as.name_space);
  const auto look = [&](const std::vector<PolicyRule>& rules, bool ingress) {
    for (const PolicyRule& rule : rules) {
      if (rule.selects(pod.as, labels, policy.name_space)) {
        places.emplace_back(cat("p-", rule.id), address);
      }
      if (ingress && !subject) continue;  // its own ports are what is named
      for (const PolicyPort& named : rule.ports) {
        for (const auto& port : pod.as.ports) {
          if (named.name.empty() || port.name != named.name || port.protocol != named.protocol) {
            continue;
          }
          places.emplace_back(cat("n-", rule.id),
                              cat(address, " . ", port.protocol, " . ", port.number));
        }
      }
    }
  };
  look(policy.ingress, true);
  look(policy.egress, false);
  if (subject && policy.for_ingress) places.emplace_back(kSelf, cat(address, " . ", address));
  for (const char* protocol : {"tcp", "udp"}) {
    if (subject && may_ask_dns(policy, protocol)) {
      places.emplace_back(kDns, cat(address, " . ", protocol));
    }
  }
  if (places.empty()) return;
  for (const auto& [set, element] : places) add_place(set, element);
  pod.places[key] = std::move(places);
}

void PolicyModel::unplace(Pod& pod, const std::string& policy_key) {
  const auto found = pod.places.find(policy_key);
  if (found == pod.places.end()) return;
  for (const auto& [set, element] : found->second) drop_place(set, element);
  pod.places.erase(found);
}

bool PolicyModel::may_ask_dns(const PolicySpec& policy, const char* protocol) const {
  // As if a pod with the labels answered that clusters' DNS has everywhere.
  PolicyPod server;
  server.name_space = "kube-system";
  server.labels = Value::object({{"k8s-app", "kube-dns"}});
  const auto labels = labels_of(server.name_space);
  const std::string_view name = protocol == std::string_view("tcp") ? "dns-tcp" : "dns";
  return std::any_of(policy.egress.begin(), policy.egress.end(), [&](const PolicyRule& rule) {
    return rule.covers_port(protocol, kDnsPort, name) &&
           (rule.any_peer || rule.selects(server, labels, policy.name_space) ||
            rule.covers_address(options_.dns_address));
  });
}

void PolicyModel::touch(const std::string& set, const std::string& element) {
  const auto found = sets_.find(set);
  const bool there = found != sets_.end() && found->second.counted.contains(element);
  elements_before_[set].emplace(element, there);
}

void PolicyModel::add_place(const std::string& set, const std::string& element) {
  touch(set, element);
  ++sets_[set].counted[element];
}

void PolicyModel::drop_place(const std::string& set, const std::string& element) {
  const auto found = sets_.find(set);
  if (found == sets_.end()) return;
  touch(set, element);
  const auto counted = found->second.counted.find(element);
  if (counted != found->second.counted.end() && --counted->second == 0) {
    found->second.counted.erase(counted);
  }
}

void PolicyModel::choose_chains(const std::string& key, Pod& pod) {
  std::vector<const PolicySpec*> ingress;
  std::vector<const PolicySpec*> egress;
  for (const auto& [policy_key, policy] : policies_) {
    if (!pod.as.local || !policy.is_for(pod.as)) continue;
    if (policy.for_ingress) ingress.push_back(&policy);
    if (policy.for_egress) egress.push_back(&policy);
  }
  // The new ones first: a chain that stays is not made again.
  const std::string next_ingress = hold_chain('i', ingress);
  const std::string next_egress = hold_chain('e', egress);
  let_go(std::exchange(pod.ingress, next_ingress));
  let_go(std::exchange(pod.egress, next_egress));
  write_maps(pod.as.address);
  (void)key;
}

std::string PolicyModel::hold_chain(char mark, const std::vector<const PolicySpec*>& policies) {
  if (policies.empty()) return "";
  std::string ids;
  for (const PolicySpec* policy : policies) append(ids, policy->id, ' ');
  std::string& name = chain_names_[cat(mark, ' ', ids)];
  if (name.empty()) {
    name = cat(mark, '-', ++last_chain_);
    chains_before_.emplace(name, false);
    chains_[name].key = cat(mark, ' ', ids);
    std::string text;
    for (const PolicySpec* policy : policies) {
      const bool in = mark == 'i';
      for (const PolicyRule& rule : in ? policy->ingress : policy->egress) {
        append_rule(text, rule, in ? "ip saddr" : "ip daddr");
      }
    }
    chains_[name].text = text + "    drop\n";
  }
  ++chains_[name].pods;
  return name;
}

void PolicyModel::let_go(const std::string& chain) {
  if (chain.empty() || --chains_[chain].pods > 0) return;
  chains_before_.emplace(chain, true);
  chain_names_.erase(chains_[chain].key);
  chains_.erase(chain);
}

void PolicyModel::write_maps(const std::string& address) {
  const auto owners = owners_.find(address);
  const Pod* pod = owners == owners_.end() ? nullptr : &pods_.at(owners->second.back());
  const auto set = [&](const char* map, const std::string& chain) {
    auto& verdicts = maps_[map];
    const auto found = verdicts.find(address);
    verdicts_before_[map].emplace(address, found == verdicts.end() ? "" : found->second);
    if (chain.empty()) {
      verdicts.erase(address);
    } else {
      verdicts[address] = chain;
    }
  };
  set(kIngress, pod == nullptr ? "" : pod->ingress);
  set(kEgress, pod == nullptr ? "" : pod->egress);
}

std::string PolicyModel::base_chains() const {
  // Answers to what was allowed pass; so does whatever the host itself sends to
  // its pods, which is forwarded by nobody.
  std::string out =
      cat("  chain policy-forward {\n"
          "    type filter hook forward priority filter; policy accept;\n"
          "    ct state established,related accept\n"
          "    ip saddr vmap @",
          kEgress,
          "\n"
          "    ip saddr . ip daddr @",
          kSelf,
          " accept\n"
          "    ip daddr vmap @",
          kIngress,
          "\n"
          "  }\n"
          "  chain policy-input {\n"
          "    type filter hook input priority filter; policy accept;\n"
          "    iifname != \"",
          options_.bridge,
          "\" accept\n"
          "    ct state established,related accept\n");
  const auto colon = options_.local_dns.rfind(':');
  if (colon != std::string::npos) {
    append(out, "    ip daddr ", options_.local_dns.substr(0, colon), " th dport ",
           options_.local_dns.substr(colon + 1), " ip saddr . meta l4proto @", kDns, " accept\n");
  }
  append(out, "    ip saddr vmap @", kEgress, "\n  }\n");
  return out;
}

std::string PolicyModel::whole() {
  std::string out = cat("add table inet ", options_.table, "\ndelete table inet ", options_.table,
                        "\ntable inet ", options_.table, " {\n");
  for (const auto& [name, set] : sets_) {
    append(out, "  set ", name, " {\n    ", set.type, '\n');
    std::vector<std::string> elements;
    for (const auto& [element, count] : set.counted) elements.push_back(element);
    if (!elements.empty()) append(out, "    elements = ", elements_text(elements), '\n');
    out += "  }\n";
  }
  for (const auto& [name, chain] : chains_)
    append(out, "  chain ", name, " {\n", chain.text, "  }\n");
  for (const auto& [name, verdicts] : maps_) {
    append(out, "  map ", name, " {\n    type ipv4_addr : verdict;\n");
    std::vector<std::string> elements;
    for (const auto& [address, chain] : verdicts) {
      elements.push_back(cat(address, " : jump ", chain));
    }
    if (!elements.empty()) append(out, "    elements = ", elements_text(elements), '\n');
    out += "  }\n";
  }
  append(out, base_chains(), "}\n");
  elements_before_.clear();
  verdicts_before_.clear();
  sets_before_.clear();
  chains_before_.clear();
  return out;
}

std::string PolicyModel::changes() {
  const auto table = [&](const char* what) { return cat(what, " inet ", options_.table, ' '); };
  std::string made;
  std::string changed;
  std::string gone;
  for (const auto& [name, was] : sets_before_) {
    const bool is = sets_.contains(name);
    if (is && !was) append(made, table("add set"), name, " { ", sets_[name].type, " }\n");
    if (was && !is) append(gone, table("delete set"), name, '\n');
  }
  for (const auto& [name, was] : chains_before_) {
    const auto found = chains_.find(name);
    if (found != chains_.end() && !was) {
      append(made, table("add chain"), name, '\n');
      for (const auto line : split(found->second.text, '\n')) {
        if (!line.empty()) append(made, table("add rule"), name, ' ', trim(line), '\n');
      }
    }
    if (was && found == chains_.end()) {
      gone.insert(0, cat(table("flush chain"), name, '\n', table("delete chain"), name, '\n'));
    }
  }
  for (const auto& [map, before] : verdicts_before_) {
    std::vector<std::string> less;
    std::vector<std::string> more;
    for (const auto& [address, was] : before) {
      const auto found = maps_[map].find(address);
      const std::string is = found == maps_[map].end() ? "" : found->second;
      if (is == was) continue;
      if (!was.empty()) less.push_back(address);
      if (!is.empty()) more.push_back(cat(address, " : jump ", is));
    }
    if (!less.empty())
      append(changed, table("delete element"), map, ' ', elements_text(less), '\n');
    if (!more.empty()) append(changed, table("add element"), map, ' ', elements_text(more), '\n');
  }
  std::string filled;
  for (const auto& [name, before] : elements_before_) {
    const auto set = sets_.find(name);
    if (set == sets_.end()) continue;
    std::vector<std::string> less;
    std::vector<std::string> more;
    for (const auto& [element, was] : before) {
      const bool is = set->second.counted.contains(element);
      if (was && !is) less.push_back(element);
      if (is && !was) more.push_back(element);
    }
    if (!less.empty())
      append(filled, table("delete element"), name, ' ', elements_text(less), '\n');
    if (!more.empty()) append(filled, table("add element"), name, ' ', elements_text(more), '\n');
  }
  elements_before_.clear();
  verdicts_before_.clear();
  sets_before_.clear();
  chains_before_.clear();
  return cat(made, filled, changed, gone);
}

}  // namespace dibs::proxy
