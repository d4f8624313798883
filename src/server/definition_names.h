#pragma once
// Which of the names that a definition asks for it gets.
//
// Names are unique within a group: plural, singular and short names share one set, kinds and list
// kinds another. Who has a name keeps it. What a definition may have is accepted even when it does
// not get all, so that a name that becomes free is taken by whoever waits for it.

#include <string>
#include <vector>

#include "json/value.h"

namespace dibs::server {

struct NameVerdict {
  /// status.acceptedNames.
  json::Value accepted;
  bool all = true;
  /// Of the condition NamesAccepted.
  std::string reason;
  std::string message;
};

/// `group`: all definitions of the same group; may hold the definition itself.
NameVerdict judge_names(const json::Value& definition, const std::vector<json::Value>& group);

}  // namespace dibs::server
