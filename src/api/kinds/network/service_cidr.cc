// ServiceCIDR and IPAddress: the ranges that Services have their addresses of, and who has which.

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kImmutable = "field is immutable";

bool is_ipv6_cidr(std::string_view text) { return text.find(':') != std::string_view::npos; }

void validate_cidrs(const Value& spec, FieldErrors& errors) {
  const Value& cidrs = spec["cidrs"];
  const Path root("spec");
  const Path path = root.child("cidrs");
  if (cidrs.empty()) return errors.required(path, "at least one CIDR required");
  if (cidrs.size() > 2)
    return errors.invalid(path, Value::object({{"CIDRs", cidrs}}), "may only hold up to 2 values");
  const std::size_t before = errors.size();
  for (std::size_t i = 0; i < cidrs.size(); ++i)
    validate_cidr(cidrs[i].as_string(), path.index(i), errors);
  if (cidrs.size() == 2 && errors.size() == before &&
      is_ipv6_cidr(cidrs[0].as_string()) == is_ipv6_cidr(cidrs[1].as_string())) {
    errors.invalid(path, cidrs,
                   "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                   "2001:db8::/64");
  }
}

/// A range stays for life; a second one, of the other family, may be added.
void validate_cidrs_update(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& now = object["spec"]["cidrs"];
  const Value& before = old["spec"]["cidrs"];
  const Path root("spec");
  const Path path = root.child("cidrs");
  if (now.size() != before.size() && !(before.size() == 1 && now.size() == 2))
    return errors.invalid(path, now, kImmutable);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!(now[i] == before[i])) errors.invalid(path.index(i), now[i], kImmutable);
  }
  if (now.size() != before.size()) validate_cidrs(object["spec"], errors);
}

void check_segment(const Value& parent, std::string_view key, const Path& path,
                   FieldErrors& errors) {
  if (parent[key].as_string().empty()) return errors.required(path.child(key));
  add_invalid(is_path_segment_name(parent[key].as_string()), parent[key], path.child(key), errors);
}

void validate_address(const Value& object, FieldErrors& errors) {
  const Path metadata("metadata");
  const Value& name = object["metadata"]["name"];
  if (!name.as_string().empty()) validate_ip(name.as_string(), metadata.child("name"), errors);
  const Path spec("spec");
  const Path path = spec.child("parentRef");
  const Value& parent = object["spec"]["parentRef"];
  if (parent.is_null()) return errors.required(path);
  if (const Value& group = parent["group"]; !group.as_string().empty())
    add_invalid(is_dns1123_subdomain(group.as_string()), group, path.child("group"), errors);
  check_segment(parent, "resource", path, errors);
  check_segment(parent, "name", path, errors);
  if (!parent["namespace"].as_string().empty()) check_segment(parent, "namespace", path, errors);
}

}  // namespace

KindRules service_cidr_rules() {
  KindRules rules;
  rules.has_status = true;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_cidrs(object["spec"], errors);
  };
  rules.validate_update = validate_cidrs_update;
  return rules;
}

KindRules ip_address_rules() {
  KindRules rules;
  rules.name_rule = NameRule::any;  // an address, which validate_address() sees to
  rules.validate = validate_address;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_address(object, errors);
    const Path spec("spec");
    validate_immutable(object["spec"]["parentRef"], old["spec"]["parentRef"],
                       spec.child("parentRef"), errors);
  };
  return rules;
}

}  // namespace dibs::api
