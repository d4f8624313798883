#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/why_story.h"
#include "scheduler/explain.h"

namespace dibs::cli {
namespace {

using json::Value;

bool is_allocated(const Value& claim) { return claim["status"]["allocation"].is_object(); }

std::string one_line(std::string_view text) {
  std::string made;
  for (const char c : trim(text)) {
    const bool space = c == '\n' || c == '\t' || c == ' ';
    if (!space) {
      made.push_back(c);
    } else if (!made.ends_with(' ')) {
      made.push_back(' ');
    }
  }
  return made;
}

/// The part of the spec that a result is for: a request, or an alternative of one.
const Value& asked_by(const Value& claim, std::string_view result_name) {
  const std::size_t slash = result_name.find('/');
  for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
    if (request["name"].as_string() != result_name.substr(0, slash)) continue;
    if (slash == std::string_view::npos) return request["exactly"];
    for (const Value& alternative : request["firstAvailable"].items()) {
      if (alternative["name"].as_string() == result_name.substr(slash + 1)) return alternative;
    }
  }
  return json::null_value();
}

void tell_selectors(std::string_view what, const Value& selectors, std::size_t indent,
                    WhyPage& page) {
  for (const Value& selector : selectors.items()) {
    page.line(indent, cat(what, one_line(selector["cel"]["expression"].as_string())));
  }
}

/// "gpu-0, gpu-1 of pool node-1 (gpu.example.com)".
std::string devices_of(const std::vector<const Value*>& results) {
  std::map<std::string, std::vector<std::string>> pools;
  for (const Value* result : results) {
    std::string name = (*result)["device"].str();
    std::vector<std::string> amounts;
    for (const auto& [capacity, amount] : (*result)["consumedCapacity"].members()) {
      amounts.push_back(cat(capacity, " ", amount.as_string()));
    }
    if (!amounts.empty()) append(name, " [", join(amounts, ", "), "]");
    if ((*result)["adminAccess"].as_bool()) append(name, " [for administration]");
    pools[cat("pool ", (*result)["pool"].as_string(), " (", (*result)["driver"].as_string(), ")")]
        .push_back(std::move(name));
  }
  std::vector<std::string> made;
  for (const auto& [pool, devices] : pools) made.push_back(cat(join(devices, ", "), " of ", pool));
  return join(made, "; ");
}

/// "node-1", or the terms of the selector in short.
std::string place_of(const Value& allocation) {
  const Value& selector =
      allocation[allocation["nodeSelector"].is_object() ? "nodeSelector" : "availableOnNodes"];
  if (!selector.is_object()) return "any node";
  std::vector<std::string> made;
  for (const Value& term : selector["nodeSelectorTerms"].items()) {
    std::vector<std::string> parts;
    for (const char* list : {"matchFields", "matchExpressions"}) {
      for (const Value& rule : term[list].items()) {
        std::vector<std::string> values;
        for (const Value& value : rule["values"].items()) values.push_back(value.str());
        const bool name = rule["key"].as_string() == "metadata.name";
        parts.push_back(name
                            ? join(values, ", ")
                            : cat(rule["key"].as_string(), " ",
                                  to_lower(rule["operator"].as_string()), " ", join(values, ", ")));
      }
    }
    made.push_back(join(parts, " and "));
  }
  return join(made, ", or ");
}

/// The claim of an entry of a pod's spec.resourceClaims; "" if it is not made yet.
std::string claim_name(const Value& pod, const Value& entry, int release) {
  const Value& source = entry["source"].is_object() ? entry["source"] : entry;
  if (source["resourceClaimName"].is_string()) return source["resourceClaimName"].str();
  for (const Value& status : pod["status"]["resourceClaimStatuses"].items()) {
    if (status["name"] == entry["name"]) return status["resourceClaimName"].str();
  }
  if (!scheduler::is_early(release)) return {};
  return cat(pod["metadata"]["name"].as_string(), "-", entry["name"].as_string());
}

class ClaimStory {
 public:
  ClaimStory(const WhyWorld& world, const Value& object)
      : world_(world),
        object_(object),
        name_(object["metadata"]["name"].str()),
        name_space_(object["metadata"]["namespace"].str()) {
    made_.document = Value::object({{"kind", "ResourceClaim"},
                                    {"namespace", name_space_},
                                    {"name", name_},
                                    {"state", "Pending"},
                                    {"reason", ""},
                                    {"message", ""}});
  }

  WhyStory tell() {
    made_.document.set("claim", claim_document(object_));
    if (is_allocated(object_)) {
      tell_allocated();
    } else {
      tell_pending();
    }
    return std::move(made_);
  }

 private:
  void answer(const char* state, const char* reason, const std::string& message) {
    made_.document.set("state", state);
    made_.document.set("reason", reason);
    made_.document.set("message", message);
    made_.page.line(0, cat("claim ", name_space_, "/", name_, " ", message));
  }

  bool deleting() const { return object_["metadata"]["deletionTimestamp"].is_string(); }

  void tell_allocated() {
    made_.status = 0;
    const Value& allocation = object_["status"]["allocation"];
    const std::size_t count = allocation["devices"]["results"].size();
    const std::vector<std::string> not_ready = missing_conditions(object_);
    const std::string users = users_of(world_, object_);
    std::string message =
        is_classic(object_)
            ? cat("is served by driver ", object_["status"]["driverName"].as_string(), " on ",
                  place_of(allocation))
            : cat("has ", count, count == 1 ? " device" : " devices", " on ", place_of(allocation));
    const char* reason = "InUse";
    if (deleting()) {
      reason = "Deleting";
      append(message, ", and is being deleted: its devices are freed when nobody uses it");
    } else if (object_["status"]["deallocationRequested"].as_bool()) {
      reason = "Deallocating";
      append(message, ", and is to be given back");
    } else if (!not_ready.empty()) {
      reason = "BindingConditions";
      append(message, count == 1 ? ", which is not ready yet" : ", which are not ready yet");
    } else if (users.empty()) {
      reason = "Unused";
      append(message, ", and nobody uses it");
    }
    answer("Allocated", reason, message);
    for (const std::string& text : not_ready) made_.page.line(2, text);
    made_.page.gap();
    tell_allocation(world_, object_, 0, made_.page);
    made_.page.line(
        0, users.empty() ? std::string("reserved for nobody") : cat("reserved for ", users));
    tell_origin();
  }

  void tell_origin() {
    for (const Value& owner : object_["metadata"]["ownerReferences"].items()) {
      made_.page.line(0, cat("belongs to ", to_lower(owner["kind"].as_string()), " ",
                             owner["name"].as_string(), ", and goes with it"));
    }
  }

  void tell_pending() {
    if (deleting()) {
      std::vector<std::string> held;
      for (const Value& finalizer : object_["metadata"]["finalizers"].items()) {
        held.push_back(finalizer.str());
      }
      answer("Pending", "Deleting",
             cat("is being deleted", held.empty() ? "" : "; kept by the finalizer ",
                 join(held, ", ")));
      return;
    }
    std::vector<const Value*> users;
    for (const Value& pod : world_.objects.pods) {
      const Value& metadata = pod["metadata"];
      if (metadata["namespace"].as_string() != name_space_) continue;
      const std::vector<std::string> names = claim_names(pod, world_.release);
      if (std::find(names.begin(), names.end(), name_) != names.end()) users.push_back(&pod);
    }
    if (users.empty()) {
      if (is_classic(object_)) return tell_unused_classic();
      answer("Pending", "NoPod",
             "is pending: no pod uses it, and devices are given to claims of pods");
      tell_chances();
      return;
    }
    answer("Pending", "PodPending",
           cat("is pending with ", users.size() == 1 ? "its pod" : "its pods"));
    Value pods = Value::array();
    for (const Value* pod : users) {
      WhyStory story = tell_pod(world_, *pod);
      made_.page.gap();
      for (const std::string_view line : split(trim(story.page.text()), '\n')) {
        if (trim(line).empty()) {
          made_.page.gap();
        } else {
          made_.page.line(line.find_first_not_of(' '), trim(line));
        }
      }
      pods.push(std::move(story.document));
    }
    made_.document.set("pods", std::move(pods));
    tell_origin();
  }

  void tell_unused_classic() {
    const std::string class_name = object_["spec"]["resourceClassName"].str();
    const Value* of = find_object(world_.objects.resource_classes, "", class_name);
    if (of == nullptr) {
      answer("Pending", "ClassMissing",
             cat("is pending: ResourceClass ", class_name, " does not exist"));
      return;
    }
    if ((*of)["structuredParameters"].as_bool()) {
      answer("Pending", "NoPod",
             "is pending: no pod uses it, and resources are given to claims of pods");
      tell_chances();
      return;
    }
    const std::string_view driver = (*of)["driverName"].as_string();
    if (object_["spec"]["allocationMode"].as_string() == "Immediate") {
      answer("Pending", "DriverNotAllocated",
             cat("is pending: it is to be allocated at once, and driver ", driver,
                 " has not done so: does its controller run? Its events are on the claim"));
      return;
    }
    answer("Pending", "NoPod",
           cat("is pending: no pod uses it, and driver ", driver, " allocates it for the first"));
  }

  /// Were a pod to use it now.
  void tell_chances() {
    const scheduler::PodPtr pod = scheduler::Pod::read(Value::object(
        {{"metadata", Value::object({{"name", ""}, {"namespace", name_space_}, {"uid", "-"}})},
         {"spec",
          Value::object(
              {{"tolerations", Value::array({Value::object({{"operator", "Exists"}})})},
               {"resourceClaims",
                Value::array({Value::object({{"name", "c"}, {"resourceClaimName", name_}})})}})}}));
    const auto state = make_state(world_);
    const scheduler::Profile* profile = &world_.configuration.profiles.front();
    const scheduler::Explanation found =
        scheduler::explain_placement(state->cluster, state->devices, pod, *profile, world_.now);
    made_.document.set("placement", to_json(found));
    if (!found.obstacle().empty()) {
      made_.page.line(2, found.obstacle());
      return;
    }
    made_.page.line(2, cat("were a pod to use it now, ", found.able.size(), " of ", found.nodes,
                           found.nodes == 1 ? " node" : " nodes", " could serve it"));
    for (const scheduler::NodeGroup& group : found.groups) {
      made_.page.gap();
      made_.page.line(0, scheduler::name_nodes(group.nodes));
      for (const std::string& text : scheduler::describe(group, found)) {
        made_.page.line(text.starts_with("  ") ? 4 : 2, trim(text));
      }
    }
  }

  const WhyWorld& world_;
  const Value& object_;
  std::string name_;
  std::string name_space_;
  WhyStory made_;
};

}  // namespace

void tell_allocation(const WhyWorld& world, const Value& claim, std::size_t indent, WhyPage& page) {
  if (!is_allocated(claim)) {
    page.line(indent, "has no devices");
    return;
  }
  std::vector<std::string> names;
  std::map<std::string, std::vector<const Value*>> by_request;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    const std::string name = result["request"].str();
    if (!by_request.contains(name)) names.push_back(name);
    by_request[name].push_back(&result);
  }
  for (const std::string& name : names) {
    const Value& asked = asked_by(claim, name);
    page.line(indent, cat("request ", name, ": ", devices_of(by_request[name])));
    const std::string class_name = asked["deviceClassName"].str();
    if (class_name.empty()) continue;
    const Value* device_class = find_object(world.objects.classes, "", class_name);
    if (device_class == nullptr) {
      page.line(indent + 4, cat("class ", class_name, ", which does not exist any more"));
    } else if ((*device_class)["spec"]["selectors"].empty()) {
      page.line(indent + 4, cat("class ", class_name));
    } else {
      tell_selectors(cat("class ", class_name, ": "), (*device_class)["spec"]["selectors"],
                     indent + 4, page);
    }
    tell_selectors("selector: ", asked["selectors"], indent + 4, page);
  }
  for (const Value& constraint : claim["spec"]["devices"]["constraints"].items()) {
    for (const char* kind : {"matchAttribute", "distinctAttribute"}) {
      if (!constraint[kind].is_string()) continue;
      page.line(indent, cat("constraint ", kind, ": ", constraint[kind].as_string()));
    }
  }
}

Value claim_document(const Value& claim) {
  Value devices = Value::array();
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    devices.push(Value::object({{"request", result["request"]},
                                {"driver", result["driver"]},
                                {"pool", result["pool"]},
                                {"device", result["device"]}}));
  }
  Value users = Value::array();
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    users.push(Value::object({{"resource", user["resource"]}, {"name", user["name"]}}));
  }
  return Value::object({{"name", claim["metadata"]["name"]},
                        {"allocated", is_allocated(claim)},
                        {"devices", std::move(devices)},
                        {"reservedFor", std::move(users)}});
}

std::string users_of(const WhyWorld& world, const Value& claim) {
  std::vector<std::string> made;
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    const std::string resource = user["resource"].str();
    if (resource != "pods") {
      made.push_back(cat(resource, " ", user["name"].as_string()));
      continue;
    }
    const Value* pod = find_object(world.objects.pods, claim["metadata"]["namespace"].as_string(),
                                   user["name"].as_string());
    const bool there = pod != nullptr && (*pod)["metadata"]["uid"] == user["uid"];
    const std::string node = there ? (*pod)["spec"]["nodeName"].str() : "";
    made.push_back(cat("pod ", user["name"].as_string(),
                       !there         ? " (which is gone)"
                       : node.empty() ? " (not placed yet)"
                                      : cat(" (on ", node, ")")));
  }
  return join(made, ", ");
}

std::vector<std::string> missing_conditions(const Value& claim) {
  std::vector<std::string> made;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (result["bindingConditions"].empty()) continue;
    const Value* status = nullptr;
    for (const Value& device : claim["status"]["devices"].items()) {
      if (device["driver"] == result["driver"] && device["pool"] == result["pool"] &&
          device["device"] == result["device"]) {
        status = &device;
      }
    }
    const auto holds = [&](const Value& type) {
      if (status == nullptr) return false;
      const auto conditions = (*status)["conditions"].items();
      return std::any_of(conditions.begin(), conditions.end(), [&](const Value& condition) {
        return condition["type"] == type && condition["status"].as_string() == "True";
      });
    };
    std::vector<std::string> missing;
    for (const Value& type : result["bindingConditions"].items()) {
      if (!holds(type)) missing.push_back(type.str());
    }
    std::vector<std::string> failed;
    for (const Value& type : result["bindingFailureConditions"].items()) {
      if (!holds(type)) continue;
      failed.push_back(type.str());
      for (const Value& condition : (*status)["conditions"].items()) {
        if (condition["type"] != type || condition["message"].as_string().empty()) continue;
        append(failed.back(), " (", condition["message"].as_string(), ")");
      }
    }
    const std::string_view device = result["device"].as_string();
    if (!failed.empty()) {
      made.push_back(cat("device ", device, " has failed: ", join(failed, ", ")));
    } else if (!missing.empty()) {
      made.push_back(cat("device ", device, " waits for the condition ", join(missing, ", ")));
    }
  }
  return made;
}

std::vector<std::string> claim_names(const Value& pod, int release) {
  std::vector<std::string> made;
  for (const Value& entry : pod["spec"]["resourceClaims"].items()) {
    std::string name = claim_name(pod, entry, release);
    if (!name.empty()) made.push_back(std::move(name));
  }
  const Value& extended = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
  if (extended.is_string()) made.push_back(extended.str());
  return made;
}

WhyStory tell_claim(const WhyWorld& world, const Value& claim) {
  return ClaimStory(world, claim).tell();
}

}  // namespace dibs::cli
