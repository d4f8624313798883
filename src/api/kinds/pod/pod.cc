#include "api/kinds/pod/pod.h"

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/annotations.h"
#include "api/kinds/pod/containers.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

// The single address and the list of them are one field in two forms; the single one is right when
// they differ.
void unite_addresses(Value& status, std::string_view one, std::string_view list) {
  std::string_view ip = status[one].as_string();
  std::string_view first = status[list][0]["ip"].as_string();
  if (!ip.empty() && ip != first) {
    Value address(ip);
    status.set(list, Value::array({Value::object({{"ip", address}})}));
  } else if (ip.empty() && !first.empty()) {
    Value address(first);
    status.set(one, address);
  }
}

void set_pod_defaults(Value& pod) {
  set_pod_spec_defaults(pod.mut("spec"), false);
  if (pod["spec"]["terminationGracePeriodSeconds"].as_int() < 0) {
    pod.mut("spec").set("terminationGracePeriodSeconds", 1);
  }
  if (!pod["status"].is_null()) unite_addresses(pod.mut("status"), "podIP", "podIPs");
}

void set_condition(Value& status, Value condition) {
  Value& conditions = status.mut("conditions");
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (!(conditions[i]["type"] == condition["type"])) continue;
    if (conditions[i]["status"] == condition["status"]) {
      condition.set("lastTransitionTime", Value(conditions[i]["lastTransitionTime"]));
    }
    conditions.mut(i) = std::move(condition);
    return;
  }
  conditions.push(std::move(condition));
}

Value scheduled_condition(bool scheduled, Time now) {
  Value condition = Value::object({{"type", "PodScheduled"},
                                   {"status", scheduled ? "True" : "False"},
                                   {"lastProbeTime", Value()},
                                   {"lastTransitionTime", format_rfc3339(now)}});
  if (!scheduled) {
    condition.set("reason", "SchedulingGated");
    condition.set("message", "Scheduling is blocked due to non-empty scheduling gates");
  }
  return condition;
}

void prepare_status(Value& pod, const Value& old) {
  Value& status = pod.mut("status");
  const Value& before = old["status"];
  if (status["qosClass"].as_string().empty() && is_set(before, "qosClass")) {
    status.set("qosClass", Value(before["qosClass"]));
  }
  // A client that does not know of these must not wipe them: what it left out stays.
  for (const char* key : {"resourceClaimStatuses", "extendedResourceClaimStatus",
                          "nodeAllocatableResourceClaimStatuses"}) {
    if (status[key].is_null() && is_set(before, key)) status.set(key, Value(before[key]));
    if (status[key].is_array() && status[key].empty()) status.erase(key);
  }
  if (status["observedGeneration"].as_int() == 0 && is_set(before, "observedGeneration")) {
    status.set("observedGeneration", Value(before["observedGeneration"]));
  }
  Value& metadata = pod.mut("metadata");
  if (is_set(old["metadata"], "ownerReferences")) {
    metadata.set("ownerReferences", Value(old["metadata"]["ownerReferences"]));
  } else {
    metadata.erase("ownerReferences");
  }
}

std::vector<std::string> pod_warnings(const Value& pod, const Value* old) {
  if (old != nullptr) return {};
  std::vector<std::string> texts;
  Faults faults = is_dns1123_label(pod["metadata"]["name"].as_string());
  if (!faults.empty()) {
    texts.push_back(
        cat("metadata.name: this is used in the Pod's hostname, which can result in "
            "surprising behavior; a DNS label is recommended: [",
            join(faults, " "), "]"));
  }
  for (std::string& text : pod_template_warnings(pod, nullptr, nullptr)) {
    texts.push_back(std::move(text));
  }
  return texts;
}

SelectableField text_field(std::string label, const char* part, const char* key) {
  return {std::move(label), [part, key](const Value& pod) { return pod[part][key].str(); }};
}

std::string aggregate_text(const FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const FieldError& error : errors.errors())
    texts.push_back(cat(error.field, ": ", error.text));
  return texts.size() == 1 ? texts[0] : cat("[", join(texts, ", "), "]");
}

Error binding_conflict(const Value& pod, std::string_view what) {
  std::string name = pod["metadata"]["name"].str();
  ErrorDetails details;
  details.name = name;
  details.kind = "pods/binding";
  return Error(Code::conflict,
               cat("Operation cannot be fulfilled on pods/binding ", quoted(name), ": pod ", name,
                   " ", what),
               std::move(details));
}

void merge_map(Value& metadata, const Value& from, std::string_view key) {
  for (const auto& [name, value] : from[key].members()) metadata.mut(key).set(name, value);
}

/// Pods that may still run get time to end, all others none.
std::int64_t pod_grace(const Value& pod, std::optional<std::int64_t> wanted) {
  std::int64_t grace = wanted ? *wanted : pod["spec"]["terminationGracePeriodSeconds"].as_int(30);
  auto phase = pod["status"]["phase"].as_string();
  if (pod["spec"]["nodeName"].as_string().empty() || phase == "Failed" || phase == "Succeeded")
    grace = 0;
  return grace < 0 ? 1 : grace;
}

KindRules pod_rules() {
  KindRules rules;
  rules.set_defaults = set_pod_defaults;
  rules.prepare_create = [](Value& pod, const RuleContext& context) {
    prepare_pod(pod, context.now);
  };
  rules.prepare_status = [](Value& pod, const Value& old, const RuleContext&) {
    prepare_status(pod, old);
  };
  rules.validate = validate_pod;
  rules.validate_update = validate_pod_update;
  rules.validate_status = validate_pod_status_update;
  rules.warnings = pod_warnings;
  rules.name_rule = NameRule::subdomain;
  rules.grace = pod_grace;
  rules.proxied = ProxyTarget::pod;
  rules.returns_deleted = true;
  rules.tracks_generation = true;
  rules.generation_since = 33;
  rules.has_status = true;
  rules.selectable = {
      text_field("spec.nodeName", "spec", "nodeName"),
      text_field("spec.host", "spec", "nodeName"),
      text_field("spec.restartPolicy", "spec", "restartPolicy"),
      text_field("spec.schedulerName", "spec", "schedulerName"),
      text_field("spec.serviceAccountName", "spec", "serviceAccountName"),
      {"spec.hostNetwork",
       [](const Value& pod) {
         return std::string(pod["spec"]["hostNetwork"].as_bool() ? "true" : "false");
       }},
      text_field("status.phase", "status", "phase"),
      {"status.podIP", [](const Value& pod) { return pod["status"]["podIPs"][0]["ip"].str(); }},
      // Known as a label, but never set by the API.
      {"status.podIPs", [](const Value&) { return std::string(); }},
      text_field("status.nominatedNodeName", "status", "nominatedNodeName"),
  };
  return rules;
}

KindRules pod_template_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.set_defaults = [](Value& object) { set_pod_template_defaults(object.mut("template")); };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_pod_template(object["template"], Path("template"), errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_pod_template(object["template"], Path("template"), errors, &old["template"]);
  };
  rules.warnings = [](const Value& object, const Value*) {
    Path path("template");
    return pod_template_warnings(object["template"], &path, nullptr);
  };
  rules.tracks_generation = true;
  return rules;
}

}  // namespace

void prepare_pod(Value& pod, Time now) {
  Value status = Value::object({{"phase", "Pending"}, {"qosClass", qos_class(pod["spec"])}});
  if (!pod["spec"]["schedulingGates"].empty()) {
    set_condition(status, scheduled_condition(false, now));
  }
  pod.set("status", std::move(status));
  merge_match_label_keys(pod);
  apply_app_armor_annotations(pod);
}

void validate_pod_at_any_time(const Value& pod, FieldErrors& errors) {
  const Value& metadata = pod["metadata"];
  const Value& spec = pod["spec"];
  Path metadata_at("metadata");
  Path path("spec");
  validate_pod_annotations(metadata["annotations"], spec, metadata_at.child("annotations"), errors);
  PodOptions options;
  options.metadata = &metadata;
  validate_pod_spec(spec, path, options, errors);
  if (spec["serviceAccountName"].as_string().empty()) {
    Path volumes_at = path.child("volumes");
    for (std::size_t v = 0; v < spec["volumes"].size(); ++v) {
      const Value& sources = spec["volumes"][v]["projected"]["sources"];
      for (std::size_t s = 0; s < sources.size(); ++s) {
        if (!is_set(sources[s], "serviceAccountToken")) continue;
        Path volume_at = volumes_at.index(v);
        Path projected_at = volume_at.child("projected");
        Path sources_at = projected_at.child("sources");
        Path at = sources_at.index(s);
        errors.forbidden(at.child("serviceAccountToken"),
                         "must not be specified when serviceAccountName is not set");
      }
    }
  }
  validate_image_blanks(spec["containers"], path.child("containers"), errors);
  validate_image_blanks(spec["initContainers"], path.child("initContainers"), errors);
}

void validate_pod(const Value& pod, FieldErrors& errors) {
  validate_pod_at_any_time(pod, errors);
  const Value& spec = pod["spec"];
  Path path("spec");
  if (!spec["ephemeralContainers"].empty()) {
    errors.forbidden(path.child("ephemeralContainers"), "cannot be set on create");
  }
  if (!spec["nodeName"].as_string().empty() && !spec["schedulingGates"].empty()) {
    errors.forbidden(path.child("nodeName"),
                     "cannot be set until all schedulingGates have been cleared");
  }
}

Result<> check_binding(const Value& binding, std::string_view name) {
  if (!name.empty() && binding["metadata"]["name"].as_string() != name) {
    return Error::bad_request("name in URL does not match name in Binding object");
  }
  const Value& target = binding["target"];
  FieldErrors errors;
  Path path("target");
  std::string_view kind = target["kind"].as_string();
  if (!kind.empty() && kind != "Node") {
    errors.not_supported(path.child("kind"), target["kind"], {"Node", "<empty>"});
  }
  if (target["name"].as_string().empty()) {
    errors.required(path.child("name"));
  } else {
    add_invalid(is_dns1123_subdomain(target["name"].as_string()), target["name"],
                path.child("name"), errors);
  }
  if (!errors.empty()) return Error::plain(aggregate_text(errors));
  return success();
}

Result<Value> bind_pod(const Value& pod, const Value& binding, Time now) {
  if (!pod["metadata"]["deletionTimestamp"].is_null()) {
    return binding_conflict(pod, "is being deleted, cannot be assigned to a host");
  }
  std::string_view node = pod["spec"]["nodeName"].as_string();
  if (!node.empty()) {
    return binding_conflict(pod, cat("is already assigned to node ", quoted(node)));
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    return binding_conflict(pod, "has non-empty .spec.schedulingGates");
  }
  Value bound = pod;
  bound.mut("spec").set("nodeName", Value(binding["target"]["name"]));
  bound.mut("status").erase("nominatedNodeName");
  merge_map(bound.mut("metadata"), binding["metadata"], "annotations");
  merge_map(bound.mut("metadata"), binding["metadata"], "labels");
  set_condition(bound.mut("status"), scheduled_condition(true, now));
  return bound;
}

void add_pod_rules(RuleTable& table) {
  table[{"", "Pod"}] = pod_rules();
  table[{"", "Binding"}].question = Question::binding;
  table[{"", "PodTemplate"}] = pod_template_rules();
}

}  // namespace dibs::api
