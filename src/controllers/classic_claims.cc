#include "controllers/classic_claims.h"

#include "api/kinds/resource/versions/model.h"
#include "base/finalizers.h"
#include "controllers/controller.h"

namespace dibs::controllers {
namespace {

bool is_allocated(const Value& claim) { return !claim["status"]["allocation"].is_null(); }

bool waits_for_consumer(const Value& claim) {
  return claim["spec"]["allocationMode"].as_string() == "WaitForFirstConsumer";
}

void end_classic(Value& claim) {
  const bool lasts = !waits_for_consumer(claim);
  if (has_claim_finalizer(claim)) {
    // The driver's name stays: it says who had it.
    if (!lasts || is_deleting(claim)) claim.mut("status").erase("allocation");
  } else if (!lasts && is_allocated(claim)) {
    claim.mut("status").set("deallocationRequested", true);
  }
}

}  // namespace

std::string_view claim_finalizer(const Value& claim) {
  return api::is_classic(claim) ? kNamedClaimFinalizer : kClaimFinalizer;
}

bool has_claim_finalizer(const Value& claim) {
  for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() == claim_finalizer(claim)) return true;
  }
  return false;
}

void end_allocation(Value& claim) {
  if (api::is_classic(claim)) return end_classic(claim);
  if (!has_claim_finalizer(claim)) return;
  claim.mut("status").erase("allocation");
  claim.mut("status").erase("devices");
}

bool takes_another_pod(const Value& claim) {
  if (!is_allocated(claim)) return false;
  if (!api::is_classic(claim)) return true;
  const Value& status = claim["status"];
  if (is_deleting(claim) || status["deallocationRequested"].as_bool()) return false;
  return status["reservedFor"].empty() || status["allocation"]["shareable"].as_bool();
}

bool waits_for_node(const Value& claim) {
  return api::is_classic(claim) && waits_for_consumer(claim) && !is_allocated(claim) &&
         !is_deleting(claim);
}

Value context_for(const Value& pod) {
  return Value::object(
      {{"apiVersion", api::kClassicVersion},
       {"kind", "PodSchedulingContext"},
       {"metadata",
        Value::object({{"name", pod["metadata"]["name"]},
                       {"namespace", pod["metadata"]["namespace"]},
                       {"ownerReferences", Value::array({owner_reference(pod, false)})}})},
       {"spec", Value::object({{"selectedNode", pod["spec"]["nodeName"]}})}});
}

}  // namespace dibs::controllers
