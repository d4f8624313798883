#pragma once
// The end of a namespace, as its conditions tell it.

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

/// What one pass over a namespace's contents has found.
struct NamespaceContents {
  std::string discovery_error;
  std::vector<std::string> deletion_errors;
  std::map<std::string, std::size_t> remaining;   // by "resource.group"
  std::map<std::string, std::size_t> finalizers;  // objects that each one holds

  bool empty() const {
    return discovery_error.empty() && deletion_errors.empty() && remaining.empty();
  }
};

/// The namespace with its five conditions brought up to date. A condition that says the same as
/// before keeps its time.
json::Value with_conditions(json::Value name_space, const NamespaceContents& contents, Time now);

}  // namespace dibs::controllers
