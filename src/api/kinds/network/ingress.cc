// Ingress and IngressClass: how requests of HTTP reach Services, and who sees to it.

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";
constexpr std::size_t kLongestController = 250;

/// What an object that is there already may keep, though it would be refused today.
struct Kept {
  bool secret_names = false;
  bool wildcard_rules = false;
};

void check_segment(const Value& text, const Path& path, FieldErrors& errors) {
  if (text.as_string().empty()) return errors.required(path);
  add_invalid(is_path_segment_name(text.as_string()), text, path, errors);
}

/// The object that serves, or that has the parameters of a class.
void validate_reference(const Value& reference, const Path& path, FieldErrors& errors) {
  if (is_set(reference, "apiGroup")) {
    add_invalid(is_dns1123_subdomain(reference["apiGroup"].as_string()), reference["apiGroup"],
                path.child("apiGroup"), errors);
  }
  check_segment(reference["kind"], path.child("kind"), errors);
  check_segment(reference["name"], path.child("name"), errors);
}

void validate_service_backend(const Value& service, const Path& backend, FieldErrors& errors) {
  const Path path = backend.child("service");
  const Value& name = service["name"];
  if (name.as_string().empty()) {
    errors.required(path.child("name"));
  } else {
    add_invalid(is_name(NameRule::label, name.as_string()), name, path.child("name"), errors);
  }
  const Value& port_name = service["port"]["name"];
  const Value& number = service["port"]["number"];
  const bool named = !port_name.as_string().empty();
  const Path port = path.child("port");
  if (named && number.as_int() != 0) {
    errors.invalid(backend, "", "cannot set both port name & port number");
  } else if (named) {
    add_invalid(is_port_name(port_name.as_string()), port_name, port.child("name"), errors);
  } else if (number.as_int() != 0) {
    add_invalid(is_port_number(number.as_int()), number, port.child("number"), errors);
  } else {
    errors.required(backend, "port name or number is required");
  }
}

void validate_backend(const Value& backend, const Path& path, FieldErrors& errors) {
  const bool resource = is_set(backend, "resource");
  const bool service = is_set(backend, "service");
  if (resource && service) {
    errors.invalid(path, "", "cannot set both resource and service backends");
  } else if (resource) {
    validate_reference(backend["resource"], path.child("resource"), errors);
  } else if (service) {
    validate_service_backend(backend["service"], path, errors);
  } else {
    errors.invalid(path, "", "resource or service backend is required");
  }
}

void validate_path(const Value& rule, const Path& path, FieldErrors& errors) {
  const Value& type = rule["pathType"];
  if (type.is_null()) {
    return errors.required(path.child("pathType"), "pathType must be specified");
  }
  const Value text = rule["path"].is_null() ? Value("") : rule["path"];
  const std::string_view plain = text.as_string();
  const Path at = path.child("path");
  constexpr std::string_view kAbsolute = "must be an absolute path";
  if (is_one_of(type.as_string(), {"Exact", "Prefix"})) {
    if (!plain.starts_with('/')) errors.invalid(at, text, kAbsolute);
    for (std::string_view piece : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (plain.find(piece) != std::string_view::npos)
        errors.invalid(at, text, cat("must not contain '", piece, "'"));
    }
    for (std::string_view end : {"/..", "/."}) {
      if (plain.ends_with(end)) errors.invalid(at, text, cat("cannot end with '", end, "'"));
    }
  } else if (type.as_string() == "ImplementationSpecific") {
    if (!plain.empty() && !plain.starts_with('/')) errors.invalid(at, text, kAbsolute);
  } else {
    errors.not_supported(path.child("pathType"), type,
                         {"Exact", "ImplementationSpecific", "Prefix"});
  }
  validate_backend(rule["backend"], path.child("backend"), errors);
}

void validate_http(const Value& rule, const Path& path, FieldErrors& errors) {
  if (!is_set(rule, "http")) return;
  const Value& paths = rule["http"]["paths"];
  const Path http = path.child("http");
  const Path list = http.child("paths");
  if (paths.empty()) errors.required(list);
  for (std::size_t i = 0; i < paths.size(); ++i) validate_path(paths[i], list.index(i), errors);
}

bool has_wildcard(std::string_view host) { return host.find('*') != std::string_view::npos; }

void check_host(const Value& host, const Path& path, FieldErrors& errors) {
  const std::string_view text = host.as_string();
  add_invalid(has_wildcard(text) ? is_wildcard_subdomain(text) : is_dns1123_subdomain(text), host,
              path, errors);
}

void check_no_address(const Value& host, const Path& path, FieldErrors& errors) {
  if (is_ip(host.as_string())) errors.invalid(path, host, "must be a DNS name, not an IP address");
}

void validate_rules(const Value& rules, const Path& list, const Kept& kept, FieldErrors& errors) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Value& host = rules[i]["host"];
    const Path path = list.index(i);
    if (!host.as_string().empty()) {
      check_no_address(host, path.child("host"), errors);
      check_host(host, path.child("host"), errors);
    }
    if (has_wildcard(host.as_string()) && kept.wildcard_rules) continue;
    validate_http(rules[i], path, errors);
  }
}

Faults secret_name_faults(std::string_view name) {
  return name.empty() ? Faults() : is_name(NameRule::subdomain, name);
}

void validate_tls(const Value& all, const Path& list, const Kept& kept, FieldErrors& errors) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Path path = list.index(i);
    const Value& hosts = all[i]["hosts"];
    const Path hosts_at = path.child("hosts");
    for (std::size_t h = 0; h < hosts.size(); ++h) check_host(hosts[h], hosts_at.index(h), errors);
    if (kept.secret_names) continue;
    const Value& name = all[i]["secretName"];
    add_invalid(secret_name_faults(name.as_string()), name, path.child("secretName"), errors);
  }
}

void validate_ingress(const Value& ingress, const Kept& kept, FieldErrors& errors) {
  const Value& spec = ingress["spec"];
  const Path path("spec");
  if (spec["rules"].empty() && !is_set(spec, "defaultBackend")) {
    errors.invalid(path, spec["rules"], "either `defaultBackend` or `rules` must be specified");
  }
  if (is_set(spec, "defaultBackend"))
    validate_backend(spec["defaultBackend"], path.child("defaultBackend"), errors);
  validate_rules(spec["rules"], path.child("rules"), kept, errors);
  validate_tls(spec["tls"], path.child("tls"), kept, errors);
  const Value& name = spec["ingressClassName"];
  if (!name.is_null()) {
    add_invalid(is_name(NameRule::subdomain, name.as_string()), name,
                path.child("ingressClassName"), errors);
  }
}

void validate_new_ingress(const Value& ingress, FieldErrors& errors) {
  validate_ingress(ingress, {}, errors);
  const Value& older = ingress["metadata"]["annotations"][kClassAnnotation];
  const Value& name = ingress["spec"]["ingressClassName"];
  if (!older.is_null() && !name.is_null() && !(older == name)) {
    const Path annotations("annotations");
    errors.invalid(annotations.child(kClassAnnotation), older,
                   "must match `ingressClassName` when both are specified");
  }
}

Kept kept_by(const Value& old) {
  Kept kept;
  for (const Value& tls : old["spec"]["tls"].items())
    if (!secret_name_faults(tls["secretName"].as_string()).empty()) kept.secret_names = true;
  for (const Value& rule : old["spec"]["rules"].items()) {
    FieldErrors errors;
    validate_http(rule, Path("rule"), errors);
    if (has_wildcard(rule["host"].as_string()) && !errors.empty()) kept.wildcard_rules = true;
  }
  return kept;
}

void validate_ingress_status(const Value& ingress, const Value& old, FieldErrors& errors) {
  const Path status("status");
  const Path balancer = status.child("loadBalancer");
  const Path list = balancer.child("ingress");
  const Value& places = ingress["status"]["loadBalancer"]["ingress"];
  std::set<std::string_view> before;
  for (const Value& place : old["status"]["loadBalancer"]["ingress"].items())
    before.insert(place["ip"].as_string());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Value& ip = places[i]["ip"];
    const Path path = list.index(i);
    if (!ip.as_string().empty() && !before.contains(ip.as_string()))
      validate_ip(ip.as_string(), path.child("ip"), errors);
    const Value& host = places[i]["hostname"];
    if (host.as_string().empty()) continue;
    add_invalid(is_dns1123_subdomain(host.as_string()), host, path.child("hostname"), errors);
    check_no_address(host, path.child("hostname"), errors);
  }
}

std::vector<std::string> ingress_warnings(const Value& ingress, const Value* old) {
  if (old != nullptr || is_set(ingress["spec"], "ingressClassName") ||
      !ingress["metadata"]["annotations"].contains(kClassAnnotation))
    return {};
  return {cat("annotation ", quoted(kClassAnnotation),
              " is deprecated, please use 'spec.ingressClassName' instead")};
}

void validate_parameters(const Value& parameters, const Path& path, FieldErrors& errors) {
  validate_reference(parameters, path, errors);
  const Value& scope = parameters["scope"];
  const Value& name_space = parameters["namespace"];
  const Path at = path.child("namespace");
  if (scope.is_null()) return errors.required(path.child("scope"));
  if (scope.as_string() == "Namespace") {
    if (name_space.is_null()) {
      errors.required(at, "`parameters.scope` is set to 'Namespace'");
    } else {
      add_invalid(is_dns1123_label(name_space.as_string()), name_space, at, errors);
    }
  } else if (scope.as_string() == "Cluster") {
    if (!name_space.is_null()) errors.forbidden(at, "`parameters.scope` is set to 'Cluster'");
  } else {
    errors.not_supported(path.child("scope"), scope, {"Cluster", "Namespace"});
  }
}

void validate_class(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Path path("spec");
  const Path at = path.child("controller");
  const std::string_view controller = spec["controller"].as_string();
  if (controller.size() > kLongestController) errors.too_long(at, kLongestController);
  if (controller.empty()) {
    errors.required(at);
  } else {
    check_domain_prefixed_path(spec["controller"], at, errors);
  }
  if (is_set(spec, "parameters"))
    validate_parameters(spec["parameters"], path.child("parameters"), errors);
}

}  // namespace

KindRules ingress_rules() {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.prepare_create = [](Value& ingress, const RuleContext&) {
    ingress.set("status", Value::object({{"loadBalancer", Value::object()}}));
  };
  rules.validate = validate_new_ingress;
  rules.validate_update = [](const Value& ingress, const Value& old, FieldErrors& errors) {
    validate_ingress(ingress, kept_by(old), errors);
  };
  rules.validate_status = validate_ingress_status;
  rules.warnings = ingress_warnings;
  rules.former_versions = {"extensions/v1beta1", "networking.k8s.io/v1beta1"};
  return rules;
}

KindRules ingress_class_rules() {
  KindRules rules;
  rules.tracks_generation = true;
  rules.set_defaults = [](Value& object) {
    if (is_set(object["spec"], "parameters"))
      set_default(object.mut("spec").mut("parameters"), "scope", "Cluster");
  };
  rules.validate = validate_class;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    const Path path("spec");
    validate_immutable(object["spec"]["controller"], old["spec"]["controller"],
                       path.child("controller"), errors);
    validate_class(object, errors);
  };
  rules.former_versions = {"networking.k8s.io/v1beta1"};
  return rules;
}

}  // namespace dibs::api
