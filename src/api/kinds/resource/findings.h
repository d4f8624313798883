#pragma once
// What the checks of a resource.k8s.io kind find, before it is told.
//
// From 1.37 on some rules are declared beside the fields (declared.h) and take the place
// of older checks that say the same in other words. The older ones still run, since releases before
// know only them; what they find is marked as covered and left out where a declared rule speaks of
// the same fault of the same field.

#include <vector>

#include "api/schema/features.h"
#include "api/schema/field_error.h"

namespace dibs::api {

struct Findings {
  explicit Findings(const Features& gates) : features(gates) {}

  const Features& features;
  FieldErrors errors;
  std::vector<std::size_t> covered;  // indices of errors

  bool on(std::string_view gate) const { return features.on(gate); }
  /// Marks everything found since there were `from` errors.
  void cover(std::size_t from) {
    for (; from < errors.size(); ++from) covered.push_back(from);
  }
};

/// Tells what was found, then what the declared rules say.
void tell(const Findings& found, const FieldErrors& declared, FieldErrors& out);

/// True when the list is short enough to be looked into; else tells so. `covered`: a declared rule
/// has the same limit.
bool fits(const json::Value& list, std::size_t limit, const Path& path, Findings& found,
          bool covered);

}  // namespace dibs::api
