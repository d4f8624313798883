// Texts for Warning headers: what is allowed in a pod but hardly meant.

#include <map>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/annotations.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/spec.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using Texts = std::vector<std::string>;

std::string deprecated_label(std::string_view key) {
  auto text = [](std::string_view since, std::string_view instead) {
    return cat("deprecated since ", since, "; use \"", instead, "\" instead");
  };
  if (key == "beta.kubernetes.io/arch") return text("v1.14", "kubernetes.io/arch");
  if (key == "beta.kubernetes.io/os") return text("v1.14", "kubernetes.io/os");
  if (key == "failure-domain.beta.kubernetes.io/region") {
    return text("v1.17", "topology.kubernetes.io/region");
  }
  if (key == "failure-domain.beta.kubernetes.io/zone") {
    return text("v1.17", "topology.kubernetes.io/zone");
  }
  if (key == "beta.kubernetes.io/instance-type") {
    return text("v1.17", "node.kubernetes.io/instance-type");
  }
  return "";
}

void warn_label(std::string_view key, const Path& path, Texts& texts) {
  std::string message = deprecated_label(key);
  if (!message.empty()) texts.push_back(cat(path.str(), ": ", message));
}

void warn_term(const Value& term, const Path& path, Texts& texts) {
  Path list = path.child("matchExpressions");
  const Value& expressions = term["matchExpressions"];
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    Path at = list.index(i);
    std::string message = deprecated_label(expressions[i]["key"].as_string());
    if (message.empty()) continue;
    texts.push_back(
        cat(at.child("key").str(), ": ", expressions[i]["key"].as_string(), " is ", message));
  }
}

void warn_node_affinity(const Value& affinity, const Path& path, Texts& texts) {
  Path required = path.child("requiredDuringSchedulingIgnoredDuringExecution");
  Path terms_at = required.child("nodeSelectorTerms");
  const Value& terms =
      affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  for (std::size_t i = 0; i < terms.size(); ++i) warn_term(terms[i], terms_at.index(i), texts);
  Path preferred_at = path.child("preferredDuringSchedulingIgnoredDuringExecution");
  const Value& preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    Path at = preferred_at.index(i);
    warn_term(preferred[i]["preference"], at.child("preference"), texts);
  }
}

constexpr std::string_view kNullSelector = ": a null labelSelector results in matching no pod";

void warn_null_selectors(const Value& affinity, const Path& path, Texts& texts) {
  Path required_at = path.child("requiredDuringSchedulingIgnoredDuringExecution");
  const Value& required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  for (std::size_t i = 0; i < required.size(); ++i) {
    if (is_set(required[i], "labelSelector")) continue;
    Path at = required_at.index(i);
    texts.push_back(cat(at.child("labelSelector").str(), kNullSelector));
  }
  Path preferred_at = path.child("preferredDuringSchedulingIgnoredDuringExecution");
  const Value& preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    if (is_set(preferred[i]["podAffinityTerm"], "labelSelector")) continue;
    Path at = preferred_at.index(i);
    Path term_at = at.child("podAffinityTerm");
    texts.push_back(cat(term_at.child("labelSelector").str(), kNullSelector));
  }
}

void warn_annotations(const Value& annotations, const Path& path, Texts& texts) {
  struct Known {
    std::string_view prefix;
    std::string_view message;
    bool whole;
  };
  static constexpr Known kKnown[] = {
      {"scheduler.alpha.kubernetes.io/critical-pod",
       "non-functional in v1.16+; use the \"priorityClassName\" field instead", true},
      {"security.alpha.kubernetes.io/sysctls",
       "non-functional in v1.11+; use the \"sysctls\" field instead", true},
      {"security.alpha.kubernetes.io/unsafe-sysctls",
       "non-functional in v1.11+; use the \"sysctls\" field instead", true},
      {"seccomp.security.alpha.kubernetes.io/pod",
       "non-functional in v1.27+; use the \"seccompProfile\" field instead", true},
      {"container.seccomp.security.alpha.kubernetes.io/",
       "non-functional in v1.27+; use the \"seccompProfile\" field instead", false},
      {kAppArmorPrefix, "deprecated since v1.30; use the \"appArmorProfile\" field instead", false},
  };
  for (const Known& known : kKnown) {
    for (const std::string& key : sorted_keys(annotations)) {
      bool hit =
          known.whole ? key == known.prefix : key.substr(0, known.prefix.size()) == known.prefix;
      if (hit) texts.push_back(cat(path.key(key).str(), ": ", known.message));
    }
  }
}

void warn_fractions(const Value& amounts, const Path& path, Texts& texts) {
  for (const char* name : {"memory", "ephemeral-storage"}) {
    const Value* amount = amounts.find(name);
    if (amount == nullptr || quantity_of(*amount).milli_value() % 1000 == 0) continue;
    texts.push_back(cat(path.key(name).str(), ": fractional byte value ",
                        quoted(amount->as_string()), " is invalid, must be an integer"));
  }
}

void warn_container(const Value& container, const Path& path, Texts& texts) {
  Path resources = path.child("resources");
  warn_fractions(container["resources"]["limits"], resources.child("limits"), texts);
  warn_fractions(container["resources"]["requests"], resources.child("requests"), texts);
  std::set<std::string> seen;
  Path env = path.child("env");
  for (std::size_t i = 0; i < container["env"].size(); ++i) {
    std::string name = container["env"][i]["name"].str();
    if (seen.insert(name).second) continue;
    texts.push_back(cat(env.index(i).str(), ": hides previous definition of ", quoted(name),
                        ", which may be dropped when using apply"));
  }
}

void warn_ports(const Value& containers, const Path& path, Texts& texts) {
  std::map<std::string, std::string> seen;
  for (std::size_t c = 0; c < containers.size(); ++c) {
    Path container_at = path.index(c);
    Path ports_at = container_at.child("ports");
    const Value& ports = containers[c]["ports"];
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const Value& port = ports[i];
      std::string key = cat(port["protocol"].as_string(), "/", port["containerPort"].as_int(), "/",
                            port["hostPort"].as_int(), "/", port["hostIP"].as_string());
      std::string at = ports_at.index(i).str();
      auto [found, fresh] = seen.emplace(key, at);
      if (!fresh) texts.push_back(cat(at, ": duplicate port definition with ", found->second));
    }
  }
}

void warn_names(const Value& spec, const Path& path, Texts& texts) {
  std::set<std::string> secrets;
  Path secrets_at = path.child("imagePullSecrets");
  for (std::size_t i = 0; i < spec["imagePullSecrets"].size(); ++i) {
    Path at = secrets_at.index(i);
    std::string name = spec["imagePullSecrets"][i]["name"].str();
    if (name.empty()) {
      texts.push_back(cat(at.child("name").str(), ": invalid empty name ", quoted(name)));
    } else if (!secrets.insert(name).second) {
      texts.push_back(cat(at.child("name").str(), ": duplicate name ", quoted(name)));
    }
  }
  std::set<std::string> ips;
  Path aliases_at = path.child("hostAliases");
  for (std::size_t i = 0; i < spec["hostAliases"].size(); ++i) {
    Path at = aliases_at.index(i);
    std::string ip = spec["hostAliases"][i]["ip"].str();
    if (!ips.insert(ip).second) {
      texts.push_back(cat(at.child("ip").str(), ": duplicate ip ", quoted(ip)));
    }
  }
}

void warn_all(const Value& metadata, const Value& spec, const Path& metadata_at,
              const Path& spec_at, Texts& texts) {
  Path node_selector = spec_at.child("nodeSelector");
  for (const std::string& key : sorted_keys(spec["nodeSelector"])) {
    warn_label(key, node_selector.key(key), texts);
  }
  Path affinity = spec_at.child("affinity");
  warn_node_affinity(spec["affinity"]["nodeAffinity"], affinity.child("nodeAffinity"), texts);
  Path spread = spec_at.child("topologySpreadConstraints");
  const Value& constraints = spec["topologySpreadConstraints"];
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    Path at = spread.index(i);
    std::string message = deprecated_label(constraints[i]["topologyKey"].as_string());
    if (!message.empty()) {
      texts.push_back(cat(at.child("topologyKey").str(), ": ",
                          constraints[i]["topologyKey"].as_string(), " is ", message));
    }
    if (!is_set(constraints[i], "labelSelector")) {
      texts.push_back(cat(at.child("labelSelector").str(), kNullSelector));
    }
  }
  warn_annotations(metadata["annotations"], metadata_at.child("annotations"), texts);
  warn_names(spec, spec_at, texts);
  if (spec["terminationGracePeriodSeconds"].as_int() < 0) {
    texts.push_back(cat(spec_at.child("terminationGracePeriodSeconds").str(),
                        ": must be >= 0; negative values are invalid and will be treated as 1"));
  }
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    Path list_at = spec_at.child(list);
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      warn_container(spec[list][i], list_at.index(i), texts);
    }
  }
  warn_ports(spec["containers"], spec_at.child("containers"), texts);
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    warn_null_selectors(spec["affinity"][kind], affinity.child(kind), texts);
  }
}

}  // namespace

std::vector<std::string> pod_template_warnings(const Value& pod_template, const Path* path,
                                               const Value* /*old*/) {
  Texts texts;
  Path metadata_at = path == nullptr ? Path("metadata") : path->child("metadata");
  Path spec_at = path == nullptr ? Path("spec") : path->child("spec");
  warn_all(pod_template["metadata"], pod_template["spec"], metadata_at, spec_at, texts);
  return texts;
}

}  // namespace dibs::api
