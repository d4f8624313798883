// A pod's priority is the number of its class; nobody writes it by hand.
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class Priority : public AdmissionPlugin {
 public:
  explicit Priority(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "Priority"; }

  Result<> mutate(Write& write) override {
    if (!write.is("", "pods") || !write.subresource.empty()) return success();
    if (write.operation == Operation::update) return keep(write);
    if (write.operation != Operation::create) return success();
    Value& pod = write.object;
    std::int64_t priority = 0;
    std::string policy = "PreemptLowerPriority";
    std::string class_name(pod["spec"]["priorityClassName"].as_string());
    Value found;
    if (class_name.empty()) {
      for (const Value& candidate : sources_.list("scheduling.k8s.io", "priorityclasses", "")) {
        if (candidate["globalDefault"].as_bool() &&
            (found.is_null() || candidate["value"].as_int() < found["value"].as_int())) {
          found = candidate;
        }
      }
      if (!found.is_null()) pod.mut("spec").set("priorityClassName", found["metadata"]["name"]);
    } else {
      found = sources_.find("scheduling.k8s.io", "priorityclasses", "", class_name);
      if (found.is_null())
        return refuse(write, cat("no PriorityClass with name ", class_name, " was found"));
    }
    if (!found.is_null()) {
      priority = found["value"].as_int();
      if (auto own = found["preemptionPolicy"].as_string(); !own.empty()) policy = own;
    }
    if (const Value* given = pod["spec"].find("priority");
        given && !given->is_null() && given->as_int() != priority) {
      return refuse(
          write, cat("the integer value of priority (", given->as_int(),
                     ") must not be provided in pod spec; priority admission controller computed ",
                     priority, " from the given PriorityClass name"));
    }
    if (const Value* given = pod["spec"].find("preemptionPolicy");
        given && !given->is_null() && given->as_string() != policy) {
      return refuse(
          write, cat("the string value of PreemptionPolicy (", given->as_string(),
                     ") must not be provided in pod spec; priority admission controller computed ",
                     policy, " from the given PriorityClass name"));
    }
    pod.mut("spec").set("priority", priority);
    pod.mut("spec").set("preemptionPolicy", policy);
    return success();
  }

 private:
  static Result<> keep(Write& write) {
    Value& pod = write.object;
    for (std::string_view field : {"priority", "preemptionPolicy"}) {
      const Value* before = write.old["spec"].find(field);
      if (before && !pod["spec"].contains(field)) pod.mut("spec").set(field, *before);
    }
    return success();
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_priority(PluginSources sources) { return std::make_unique<Priority>(sources); }

}  // namespace dibs::server
