// NetworkPolicy: which pods may speak to which.

#include <arpa/inet.h>

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

/// CIDRs of the object as it was: they may stay, whatever the rules have become.
using Kept = std::set<std::string, std::less<>>;

struct Direction {
  const char* rules;
  const char* peers;
};
constexpr Direction kDirections[] = {{"ingress", "from"}, {"egress", "to"}};

void set_defaults(Value& policy) {
  for (const auto& [rules, peers] : kDirections) {
    for (std::size_t r = 0; r < policy["spec"][rules].size(); ++r) {
      for (std::size_t p = 0; p < policy["spec"][rules][r]["ports"].size(); ++p) {
        set_default(policy.mut("spec").mut(rules).mut(r).mut("ports").mut(p), "protocol", "TCP");
      }
    }
  }
  if (!policy["spec"]["policyTypes"].empty()) return;
  Value types = Value::array({"Ingress"});
  if (!policy["spec"]["egress"].empty()) types.push("Egress");
  policy.mut("spec").set("policyTypes", std::move(types));
}

void validate_port(const Value& port, const Path& path, FieldErrors& errors) {
  const Value& number = port["port"];
  const Value& end = port["endPort"];
  if (is_set(port, "protocol") &&
      !is_one_of(port["protocol"].as_string(), {"TCP", "UDP", "SCTP"})) {
    errors.not_supported(path.child("protocol"), port["protocol"], {"TCP", "UDP", "SCTP"});
  }
  if (number.is_null()) {
    if (!end.is_null()) {
      errors.invalid(path.child("endPort"), end,
                     "may not be specified when `port` is not specified");
    }
    return;
  }
  if (number.is_string()) {
    if (!end.is_null()) {
      errors.invalid(path.child("endPort"), end, "may not be specified when `port` is non-numeric");
    }
    add_invalid(is_port_name(number.as_string()), number, path.child("port"), errors);
    return;
  }
  add_invalid(is_port_number(number.as_int()), number, path.child("port"), errors);
  if (end.is_null()) return;
  if (end.as_int() < number.as_int()) {
    errors.invalid(path.child("endPort"), end, "must be greater than or equal to `port`");
  }
  add_invalid(is_port_number(end.as_int()), end, path.child("endPort"), errors);
}

struct Cidr {
  unsigned char bytes[16] = {};
  int size = 0;  // of the address, 4 or 16
  int bits = 0;
};

/// Of a text that validate_cidr() takes. False for others.
bool read_cidr(std::string_view text, Cidr& out) {
  FieldErrors errors;
  validate_cidr(text, Path("cidr"), errors);
  if (!errors.empty()) return false;
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  out.size = inet_pton(AF_INET, address.c_str(), out.bytes) == 1 ? 4 : 16;
  if (out.size == 16) inet_pton(AF_INET6, address.c_str(), out.bytes);
  out.bits = std::stoi(std::string(text.substr(slash + 1)));
  return true;
}

bool is_strictly_inside(const Cidr& inner, const Cidr& outer) {
  if (inner.size != outer.size || inner.bits <= outer.bits) return false;
  for (int bit = 0; bit < outer.bits; ++bit) {
    if (((inner.bytes[bit / 8] ^ outer.bytes[bit / 8]) & (0x80 >> bit % 8)) != 0) return false;
  }
  return true;
}

void validate_block(const Value& block, const Kept& kept, const Path& path, FieldErrors& errors) {
  const auto check = [&](std::string_view text, const Path& at) {
    if (!kept.contains(text)) validate_cidr(text, at, errors);
  };
  const std::string_view cidr = block["cidr"].as_string();
  if (cidr.empty()) return errors.required(path.child("cidr"));
  check(cidr, path.child("cidr"));
  Cidr outer;
  if (!read_cidr(cidr, outer)) return;
  const Value& except = block["except"];
  Path list = path.child("except");
  for (std::size_t i = 0; i < except.size(); ++i) {
    check(except[i].as_string(), list.index(i));
    Cidr inner;
    if (read_cidr(except[i].as_string(), inner) && !is_strictly_inside(inner, outer)) {
      errors.invalid(list.index(i), except[i], "must be a strict subset of `cidr`");
    }
  }
}

void validate_peer(const Value& peer, const Kept& kept, const Path& path, FieldErrors& errors) {
  const bool pods = is_set(peer, "podSelector");
  const bool spaces = is_set(peer, "namespaceSelector");
  const bool block = is_set(peer, "ipBlock");
  if (pods) validate_label_selector(peer["podSelector"], path.child("podSelector"), errors);
  if (spaces) {
    validate_label_selector(peer["namespaceSelector"], path.child("namespaceSelector"), errors);
  }
  if (block) validate_block(peer["ipBlock"], kept, path.child("ipBlock"), errors);
  if (!pods && !spaces && !block) errors.required(path, "must specify a peer");
  if (block && (pods || spaces)) {
    errors.forbidden(path, "may not specify both ipBlock and another peer");
  }
}

void validate_spec(const Value& policy, const Kept& kept, FieldErrors& errors) {
  const Value& spec = policy["spec"];
  Path path("spec");
  validate_label_selector(spec["podSelector"], path.child("podSelector"), errors);
  for (const auto& [rules, peers] : kDirections) {
    Path list = path.child(rules);
    for (std::size_t r = 0; r < spec[rules].size(); ++r) {
      const Value& rule = spec[rules][r];
      Path at = list.index(r);
      Path ports_at = at.child("ports");
      Path peers_at = at.child(peers);
      for (std::size_t i = 0; i < rule["ports"].size(); ++i) {
        validate_port(rule["ports"][i], ports_at.index(i), errors);
      }
      for (std::size_t i = 0; i < rule[peers].size(); ++i) {
        validate_peer(rule[peers][i], kept, peers_at.index(i), errors);
      }
    }
  }
  const Value& types = spec["policyTypes"];
  Path types_at = path.child("policyTypes");
  if (types.size() > 2) {
    return errors.invalid(types_at, types, "may not specify more than two policyTypes");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (is_one_of(types[i].as_string(), {"Ingress", "Egress"})) continue;
    errors.not_supported(types_at.index(i), types[i], {"Ingress", "Egress"});
  }
}

/// Every CIDR of the policy with its path.
template <typename Function>
void each_cidr(const Value& policy, const Function& function) {
  Path path("spec");
  for (const auto& [rules, peers] : kDirections) {
    Path list = path.child(rules);
    const Value& all = policy["spec"][rules];
    for (std::size_t r = 0; r < all.size(); ++r) {
      Path at = list.index(r);
      Path peers_at = at.child(peers);
      for (std::size_t p = 0; p < all[r][peers].size(); ++p) {
        const Value& block = all[r][peers][p]["ipBlock"];
        if (block.is_null()) continue;
        Path peer_at = peers_at.index(p);
        Path block_at = peer_at.child("ipBlock");
        function(block["cidr"].as_string(), block_at.child("cidr"));
        Path except_at = block_at.child("except");
        for (std::size_t e = 0; e < block["except"].size(); ++e) {
          function(block["except"][e].as_string(), except_at.index(e));
        }
      }
    }
  }
}

std::vector<std::string> warnings(const Value& policy, const Value*) {
  std::vector<std::string> out;
  each_cidr(policy, [&](std::string_view text, const Path& path) {
    Cidr cidr;
    if (!read_cidr(text, cidr) || cidr.size != 16) return;
    char plain[INET6_ADDRSTRLEN] = "";
    inet_ntop(AF_INET6, cidr.bytes, plain, sizeof plain);
    const std::string right = cat(plain, '/', cidr.bits);
    if (right == text) return;
    out.push_back(cat(path.str(), ": IPv6 CIDR value ", quoted(text),
                      " should be in RFC 5952 canonical format (", quoted(right), ")"));
  });
  return out;
}

}  // namespace

KindRules network_policy_rules() {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;  // in releases whose schema has one
  rules.set_defaults = set_defaults;
  rules.prepare_create = [](Value& policy, const RuleContext&) {
    if (policy.contains("status")) policy.set("status", Value::object());
  };
  rules.validate = [](const Value& policy, FieldErrors& errors) {
    validate_spec(policy, {}, errors);
  };
  rules.validate_update = [](const Value& policy, const Value& old, FieldErrors& errors) {
    Kept kept;
    each_cidr(old, [&](std::string_view text, const Path&) { kept.emplace(text); });
    validate_spec(policy, kept, errors);
  };
  rules.validate_status = [](const Value& policy, const Value&, FieldErrors& errors) {
    Path path("status");
    validate_conditions(policy["status"]["conditions"], path.child("conditions"), errors);
  };
  rules.warnings = warnings;
  return rules;
}

}  // namespace dibs::api
