// The priority of a pod, or of a group, is the number of its class; nobody writes it by hand.
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class Priority : public AdmissionPlugin {
 public:
  explicit Priority(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "Priority"; }

  Result<> mutate(Write& write) override {
    if (!write.subresource.empty()) return success();
    if (write.is("scheduling.k8s.io", "podgroups")) {
      return write.operation == Operation::create ? admit_group(write, "pod group") : success();
    }
    if (write.is("scheduling.k8s.io", "compositepodgroups")) {
      if (write.operation != Operation::create) return success();
      return admit_group(write, "composite pod group");
    }
    if (!write.is("", "pods")) return success();
    if (write.operation == Operation::update) return keep(write);
    if (write.operation != Operation::create) return success();
    DIBS_TRY(const Found found, find(write));
    Value& pod = write.object;
    if (const Value* given = pod["spec"].find("priority");
        given && !given->is_null() && given->as_int() != found.priority) {
      return refuse(
          write, cat("the integer value of priority (", given->as_int(),
                     ") must not be provided in pod spec; priority admission controller computed ",
                     found.priority, " from the given PriorityClass name"));
    }
    DIBS_CHECK(check_policy(write, found, "pod"));
    pod.mut("spec").set("priority", found.priority);
    pod.mut("spec").set("preemptionPolicy", found.policy);
    return success();
  }

 private:
  struct Found {
    std::int64_t priority = 0;
    std::string policy = "PreemptLowerPriority";
  };

  /// What the class that the object names comes to; the default one is named in it.
  Result<Found> find(Write& write) const {
    Found out;
    std::string class_name(write.object["spec"]["priorityClassName"].as_string());
    Value found;
    if (class_name.empty()) {
      for (const Value& candidate : sources_.list("scheduling.k8s.io", "priorityclasses", "")) {
        if (candidate["globalDefault"].as_bool() &&
            (found.is_null() || candidate["value"].as_int() < found["value"].as_int())) {
          found = candidate;
        }
      }
      if (!found.is_null()) {
        write.object.mut("spec").set("priorityClassName", found["metadata"]["name"]);
      }
    } else {
      found = sources_.find("scheduling.k8s.io", "priorityclasses", "", class_name);
      if (found.is_null())
        return refuse(write, cat("no PriorityClass with name ", class_name, " was found"));
    }
    if (found.is_null()) return out;
    out.priority = found["value"].as_int();
    if (auto own = found["preemptionPolicy"].as_string(); !own.empty()) out.policy = own;
    return out;
  }

  static Result<> check_policy(const Write& write, const Found& found, std::string_view what) {
    const Value* given = write.object["spec"].find("preemptionPolicy");
    if (!given || given->is_null() || given->as_string() == found.policy) return success();
    return refuse(write, cat("the string value of PreemptionPolicy (", given->as_string(),
                             ") must not be provided in ", what,
                             " spec; priority admission controller computed ", found.policy,
                             " from the given PriorityClass name"));
  }

  Result<> admit_group(Write& write, std::string_view what) const {
    DIBS_TRY(const Found found, find(write));
    const Value& given = write.object["spec"]["priority"];
    if (!given.is_null() && given.as_int() != found.priority) {
      return refuse(write, cat("priority set in the ", what, " (", given.as_int(),
                               ") must match the priority computed (", found.priority,
                               ") based on the priority class set in the spec"));
    }
    const auto& features = write.resource.features;
    if (features && features->on("PodGroupPreemptionPolicy")) {
      DIBS_CHECK(check_policy(write, found, what));
      write.object.mut("spec").set("preemptionPolicy", found.policy);
    }
    write.object.mut("spec").set("priority", found.priority);
    return success();
  }

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
