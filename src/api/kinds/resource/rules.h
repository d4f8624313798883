#pragma once
// The rules of resource.k8s.io: defaults, what gates take out, what is valid, what a status says.
//
// Objects are judged in their stored form, whichever version they came in: v1's, or v1alpha2's for
// those of the classic model, which their apiVersion tells apart. Only messages depend on the
// version that was written. Defaults are set before the conversion, so they see every version's
// form.

#include <string_view>

#include "api/schema/features.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// The rules of a kind of resource.k8s.io for objects written in `version`. Empty ones for a kind
/// that is not of this group.
KindRules make_resource_rules(std::string_view kind, std::string_view version,
                              const Features& features);
inline KindRules make_resource_rules(std::string_view kind, const Features& features) {
  return make_resource_rules(kind, "v1", features);
}

/// The defaults that do not depend on the clock, in any version's form.
void set_device_claim_defaults(Value& object);
/// timeAdded of taints that have none.
void set_taint_times(Value& object, Time now);

/// The classic model, v1alpha2.
void set_classic_defaults(Value& object);
void validate_classic(std::string_view kind, const Value& object, const Features& features,
                      FieldErrors& errors);
void validate_classic_update(std::string_view kind, const Value& object, const Value& old,
                             const Features& features, FieldErrors& errors);
void validate_classic_status(std::string_view kind, const Value& object, const Value& old,
                             const Features& features, FieldErrors& errors);

}  // namespace dibs::api
