#pragma once
// Faults of resource.k8s.io as releases before 1.34 told them.
//
// Objects are judged in the stored form, which is v1's. Up to 1.33 the internal form was flat, so
// paths had no `exactly`, a device had its `basic` part, and messages showed whole structures in
// Go's syntax. What is valid did not change in between, as far as these releases know the fields.

#include <string_view>

#include "api/schema/kind.h"

namespace dibs::api {

/// The rules, with their faults in the words of the release of this minor number.
KindRules in_words_of_release(KindRules rules, std::string_view kind, int minor);

}  // namespace dibs::api
