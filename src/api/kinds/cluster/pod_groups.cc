#include "api/kinds/cluster/pod_groups.h"

#include <set>
#include <string>
#include <utility>

#include "api/kinds/checks.h"
#include "api/kinds/declared.h"
#include "api/schema/builtin.h"
#include "api/schema/gates.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kGroup = "scheduling.k8s.io";
constexpr const char* kStored = "v1beta1";
constexpr const char* kComposites = "v1alpha3";  // the version that has them
constexpr int kDeepest = 4;                      // templates in templates

// --- Workload: rules over the tree of its templates ---

/// No two templates of the tree have a name; those of one list are told apart by a declared rule.
void check_names(const Value& node, const Path& path, std::set<std::string>& names,
                 FieldErrors& errors) {
  const Value& groups = node["podGroupTemplates"];
  const Value& composites = node["compositePodGroupTemplates"];
  for (const auto& [list, name] :
       {std::pair{&groups, "podGroupTemplates"}, {&composites, "compositePodGroupTemplates"}}) {
    const Path at = path.child(name);
    std::set<std::string> here;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Value& own = (*list)[i]["name"];
      const Path item = at.index(i);
      if (names.contains(own.str())) errors.duplicate(item.child("name"), own);
      here.insert(own.str());
    }
    names.merge(here);
  }
  const Path at = path.child("compositePodGroupTemplates");
  for (std::size_t i = 0; i < composites.size(); ++i) {
    check_names(composites[i], at.index(i), names, errors);
  }
}

bool is_too_deep(const Value& composite, int depth) {
  if (depth == kDeepest) return true;
  for (const Value& child : composite["compositePodGroupTemplates"].items()) {
    if (is_too_deep(child, depth + 1)) return true;
  }
  return false;
}

/// Whether all templates in and below a node have the priority that was met first.
bool have_one_priority(const Value& node, const Value*& first) {
  const auto agrees = [&first](const Value& item) {
    if (first == nullptr) first = &item;
    return (*first)["priorityClassName"].as_string() == item["priorityClassName"].as_string() &&
           (*first)["priority"] == item["priority"];
  };
  for (const Value& item : node["compositePodGroupTemplates"].items()) {
    if (!agrees(item) || !have_one_priority(item, first)) return false;
  }
  for (const Value& item : node["podGroupTemplates"].items()) {
    if (!agrees(item)) return false;
  }
  return true;
}

void check_children(const Value& list, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value& composite = list[i];
    if (composite["podGroupTemplates"].empty() && composite["compositePodGroupTemplates"].empty()) {
      errors.invalid(path.index(i), composite["name"],
                     "must have at least one child PodGroupTemplate or CompositePodGroupTemplate");
    }
    const Path item = path.index(i);
    check_children(composite["compositePodGroupTemplates"],
                   item.child("compositePodGroupTemplates"), errors);
  }
}

void check_templates(const Value& spec, FieldErrors& errors) {
  const Path path("spec");
  const Path composites = path.child("compositePodGroupTemplates");
  std::set<std::string> names;
  check_names(spec, path, names, errors);
  const Value& list = spec["compositePodGroupTemplates"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_too_deep(list[i], 1)) continue;
    errors.invalid(composites.index(i), list[i]["compositePodGroupTemplates"],
                   cat("maximum template hierarchy depth is ", kDeepest));
  }
  const Value* first = nullptr;
  if (!have_one_priority(Value::object({{"podGroupTemplates", spec["podGroupTemplates"]}}),
                         first)) {
    errors.invalid(path, Value(), "detected multiple priority configurations");
  } else if (first = nullptr; !have_one_priority(spec, first)) {
    errors.invalid(path, Value(),
                   "all priority and priorityClassName values must be identical, detected "
                   "multiple values");
  }
  check_children(list, composites, errors);
}

// --- PodGroup ---

void check_claim_statuses(const Value& object, FieldErrors& errors) {
  const Path status("status");
  validate_conditions(object["status"]["conditions"], status.child("conditions"), errors);
  const Path path = status.child("resourceClaimStatuses");
  const Value& statuses = object["status"]["resourceClaimStatuses"];
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    bool known = false;
    for (const Value& claim : object["spec"]["resourceClaims"].items()) {
      known = known || claim["name"] == statuses[i]["name"];
    }
    const Path item = path.index(i);
    if (!known) {
      errors.invalid(item.child("name"), statuses[i]["name"],
                     "must match the name of an entry in `spec.resourceClaims`");
    }
  }
}

/// v1alpha2 says in a word what later versions say in an object.
void mode_to_stored(Value& spec) {
  if (!spec["disruptionMode"].is_string()) return;
  const bool whole = spec["disruptionMode"].as_string() == "PodGroup";
  spec.set("disruptionMode", Value::object({{whole ? "all" : "single", Value::object()}}));
}

void mode_from_stored(Value& spec) {
  if (!spec["disruptionMode"].is_object()) return;
  spec.set("disruptionMode", spec["disruptionMode"]["all"].is_object() ? "PodGroup" : "Pod");
}

Value with_version(Value object, std::string_view version) {
  object.set("apiVersion", cat(kGroup, "/", version));
  return object;
}

}  // namespace

bool is_group_kind(std::string_view group, std::string_view kind) {
  return group == kGroup &&
         (kind == "PodGroup" || kind == "CompositePodGroup" || kind == "Workload");
}

std::string_view group_gate(std::string_view kind) {
  return kind == "CompositePodGroup" ? "CompositePodGroup" : "GenericWorkload";
}

KindRules make_group_rules(std::string_view kind, const Features& features) {
  KindRules rules;
  const bool is_composite = kind == "CompositePodGroup";
  const bool is_group = kind == "PodGroup" || is_composite;
  const auto gates = std::make_shared<const Features>(features);
  const Schema* schema = builtin_schema(kGroup, is_composite ? kComposites : kStored, kind);
  const auto drops = std::make_shared<const Gates>(*schema);
  rules.has_status = is_group;
  rules.allow_unconditional_update = !is_group || features.minor() < 37;
  if (is_group) {
    rules.set_defaults = [gates](Value& object) {
      if (gates->on("PodGroupPreemptionPolicy") && object["spec"]["preemptionPolicy"].is_null()) {
        object.mut("spec").set("preemptionPolicy", "PreemptLowerPriority");
      }
    };
  }
  rules.prepare_create = [gates, drops](Value& object, const RuleContext&) {
    object.erase("status");
    drops->drop_disabled(object, nullptr, *gates);
  };
  rules.prepare_update = [gates, drops](Value& object, const Value& old, const RuleContext&) {
    drops->drop_disabled(object, &old, *gates);
  };
  rules.prepare_status = rules.prepare_update;
  const auto judge = [gates, schema, is_group, is_composite](const Value& object, const Value* old,
                                                             FieldErrors& errors) {
    if (is_group) {
      if (old == nullptr && !is_composite &&
          !object["spec"]["parentCompositePodGroupName"].is_null() &&
          object["spec"]["workloadRef"].is_null()) {
        const Path spec("spec");
        errors.required(spec.child("workloadRef"),
                        "must be set when parentCompositePodGroupName is set");
      }
    } else {
      check_templates(object["spec"], errors);
    }
    check_declared(*schema, object, old, *gates, errors);
  };
  rules.validate = [judge](const Value& object, FieldErrors& errors) {
    judge(object, nullptr, errors);
  };
  rules.validate_update = [judge](const Value& object, const Value& old, FieldErrors& errors) {
    judge(object, &old, errors);
  };
  if (is_group) {
    rules.validate_status = [gates, schema](const Value& object, const Value& old,
                                            FieldErrors& errors) {
      check_claim_statuses(object, errors);
      check_declared(*schema, object, &old, *gates, errors);
    };
  }
  return rules;
}

Value group_to_stored(std::string_view kind, const Value& object) {
  Value out = with_version(object, kStored);
  if (!out["spec"].is_object()) return out;
  Value& spec = out.mut("spec");
  if (kind == "Workload") {
    if (!spec["podGroupTemplates"].is_array()) return out;
    Value& list = spec.mut("podGroupTemplates");
    for (std::size_t i = 0; i < list.size(); ++i) mode_to_stored(list.mut(i));
    return out;
  }
  mode_to_stored(spec);
  const Value from = spec["podGroupTemplateRef"]["workload"];
  spec.erase("podGroupTemplateRef");
  if (!from.is_object()) return out;
  spec.set("workloadRef", Value::object({{"workloadName", from["workloadName"]},
                                         {"templateName", from["podGroupTemplateName"]}}));
  return out;
}

Value group_from_stored(std::string_view kind, std::string_view version, const Value& stored) {
  Value out = with_version(stored, version);
  if (version != "v1alpha2" || !out["spec"].is_object()) return out;
  Value& spec = out.mut("spec");
  if (kind == "Workload") {
    if (!spec["podGroupTemplates"].is_array()) return out;
    Value& list = spec.mut("podGroupTemplates");
    for (std::size_t i = 0; i < list.size(); ++i) mode_from_stored(list.mut(i));
    return out;
  }
  mode_from_stored(spec);
  const Value to = spec["workloadRef"];
  spec.erase("workloadRef");
  Value ref;
  if (to.is_object()) {
    ref = Value::object({{"workload", Value::object({{"podGroupTemplateName", to["templateName"]},
                                                     {"workloadName", to["workloadName"]}})}});
  }
  spec.set("podGroupTemplateRef", ref);
  return out;
}

}  // namespace dibs::api
