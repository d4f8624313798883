#include "proxy/policy_spec.h"

#include <algorithm>

#include "api/kinds/metadata.h"
#include "base/ipv4.h"
#include "base/strings.h"

namespace dibs::proxy {

using json::Value;

namespace {

struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// What IPv6 there is has no pods here.
std::optional<Span> span_of(std::string_view cidr) {
  const auto range = Ipv4Range::parse(cidr);
  if (!range) return std::nullopt;
  return Span{range->first, range->first + range->size() - 1};
}

void take_out(std::vector<Span>& spans, const Span& hole) {
  std::vector<Span> left;
  for (const Span& span : spans) {
    if (hole.last < span.first || hole.first > span.last) {
      left.push_back(span);
      continue;
    }
    if (hole.first > span.first) left.push_back({span.first, hole.first - 1});
    if (hole.last < span.last) left.push_back({hole.last + 1, span.last});
  }
  spans = std::move(left);
}

/// In order, none touching another: a set of the kernel takes no others.
std::vector<Span> joined(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<Span> out;
  for (const Span& span : spans) {
    if (!out.empty() && span.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, span.last);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

void read_peers(const Value& peers, PolicyRule& rule) {
  rule.any_peer = peers.empty();
  std::vector<Span> spans;
  for (const Value& peer : peers.items()) {
    const Value& block = peer["ipBlock"];
    if (block.is_null()) {
      rule.peers.push_back({peer["podSelector"], peer["namespaceSelector"]});
      continue;
    }
    rule.has_ranges = true;
    const auto whole = span_of(block["cidr"].as_string());
    if (!whole) continue;
    std::vector<Span> left = {*whole};
    for (const Value& except : block["except"].items()) {
      if (const auto hole = span_of(except.as_string())) take_out(left, *hole);
    }
    spans.insert(spans.end(), left.begin(), left.end());
  }
  for (const Span& span : joined(std::move(spans))) {
    rule.ranges.push_back(cat(ipv4_text(static_cast<std::uint32_t>(span.first)), '-',
                              ipv4_text(static_cast<std::uint32_t>(span.last))));
  }
}

void read_ports(const Value& ports, PolicyRule& rule) {
  rule.any_port = ports.empty();
  for (const Value& port : ports.items()) {
    PolicyPort made;
    made.protocol = to_lower(port["protocol"].as_string("TCP"));
    if (port["port"].is_string()) {
      made.name = port["port"].str();
    } else if (port["port"].is_integer()) {
      made.first = port["port"].as_int();
      made.last = port["endPort"].is_null() ? made.first : port["endPort"].as_int();
    }
    rule.ports.push_back(std::move(made));
  }
}

std::vector<PolicyRule> read_rules(const Value& rules, const char* peers, std::string_view id,
                                   char mark) {
  std::vector<PolicyRule> out;
  for (const Value& one : rules.items()) {
    PolicyRule& rule = out.emplace_back();
    rule.id = cat(id, mark, out.size() - 1);
    read_peers(one[peers], rule);
    read_ports(one["ports"], rule);
  }
  return out;
}

}  // namespace

std::optional<PolicyPod> read_policy_pod(const Value& pod, const std::vector<std::string>& nodes) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  if (pod["spec"]["hostNetwork"].as_bool() || phase == "Succeeded" || phase == "Failed") return {};
  PolicyPod out;
  out.address = pod["status"]["podIP"].str();
  if (!parse_ipv4(out.address)) return {};
  out.name_space = pod["metadata"]["namespace"].str();
  out.labels = pod["metadata"]["labels"];
  const std::string_view node = pod["spec"]["nodeName"].as_string();
  out.local = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : pod["spec"][list].items()) {
      for (const Value& port : container["ports"].items()) {
        if (port["name"].as_string().empty()) continue;
        out.ports.push_back({port["name"].str(), to_lower(port["protocol"].as_string("TCP")),
                             port["containerPort"].as_int()});
      }
    }
  }
  return out;
}

bool PolicyRule::has_names() const {
  return std::any_of(ports.begin(), ports.end(),
                     [](const PolicyPort& port) { return !port.name.empty(); });
}

bool PolicyRule::selects(const PolicyPod& pod, const Value& namespace_labels,
                         std::string_view own_namespace) const {
  return std::any_of(peers.begin(), peers.end(), [&](const PolicyPeer& peer) {
    const bool here = peer.namespaces.is_null()
                          ? pod.name_space == own_namespace
                          : api::label_selector_matches(peer.namespaces, namespace_labels);
    return here && (peer.pods.is_null() || api::label_selector_matches(peer.pods, pod.labels));
  });
}

bool PolicyRule::covers_address(std::string_view address) const {
  const auto number = parse_ipv4(address);
  return number && std::any_of(ranges.begin(), ranges.end(), [&](const std::string& range) {
           const auto dash = range.find('-');
           return *parse_ipv4(range.substr(0, dash)) <= *number &&
                  *number <= *parse_ipv4(range.substr(dash + 1));
         });
}

bool PolicyRule::covers_port(std::string_view protocol, std::int64_t number,
                             std::string_view name) const {
  return any_port || std::any_of(ports.begin(), ports.end(), [&](const PolicyPort& port) {
           if (port.protocol != protocol) return false;
           if (!port.name.empty()) return port.name == name;
           return port.first == 0 || (port.first <= number && number <= port.last);
         });
}

PolicySpec PolicySpec::read(const Value& policy, std::string id) {
  const Value& spec = policy["spec"];
  PolicySpec out;
  out.name_space = policy["metadata"]["namespace"].str();
  out.id = std::move(id);
  out.spec = spec;
  out.pods = spec["podSelector"];
  if (out.pods.is_null()) out.pods = Value::object();
  for (const Value& type : spec["policyTypes"].items()) {
    if (type.as_string() == "Ingress") out.for_ingress = true;
    if (type.as_string() == "Egress") out.for_egress = true;
  }
  if (out.for_ingress) out.ingress = read_rules(spec["ingress"], "from", out.id, 'i');
  if (out.for_egress) out.egress = read_rules(spec["egress"], "to", out.id, 'e');
  return out;
}

bool PolicySpec::is_for(const PolicyPod& pod) const {
  return pod.name_space == name_space && api::label_selector_matches(pods, pod.labels);
}

}  // namespace dibs::proxy
