#pragma once
// What to tell the author of a selector beyond the error itself: names that exist and look like the
// one that was written, and what to write instead.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/devices/device.h"
#include "api/devices/selector.h"
#include "cel/parse/ast.h"

namespace dibs::api {

/// The attributes and capacities that some devices have: domain to ids.
class DeviceNames {
 public:
  using Domains = std::map<std::string, std::set<std::string>, std::less<>>;

  void add(const DeviceInput& device);
  bool empty() const { return attributes.empty() && capacities.empty(); }

  Domains attributes;
  Domains capacities;
};

/// One sentence for each name in the expression that no device has, in the order of the text.
/// Devices may differ, so such a name is no error: it may be meant for others.
std::vector<std::string> unknown_names(std::string_view expression, const DeviceNames& names);

/// What to do about an issue or about a fault without issues (Selector::message); may be empty.
std::string hint_for(std::string_view message, const SelectorEnvironment& environment);

/// What to do about an error of an evaluation; may be empty.
std::string hint_for_error(std::string_view error);

/// Where an issue is: lines and columns from 1, and the line itself.
struct IssuePlace {
  std::size_t line = 1;
  std::size_t column = 1;
  std::string text;
};
IssuePlace place_of(std::string_view expression, const cel::Issue& issue);

}  // namespace dibs::api
