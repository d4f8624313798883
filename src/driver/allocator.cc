#include "driver/allocator.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::driver {

using json::Value;

Value only_on(std::string_view node) {
  // By name: a node's label need not say the same.
  const Value field = Value::object(
      {{"key", "metadata.name"}, {"operator", "In"}, {"values", Value::array({Value(node)})}});
  const Value term = Value::object({{"matchFields", Value::array({field})}});
  return Value::object({{"nodeSelectorTerms", Value::array({term})}});
}

Result<Value> Allocator::class_parameters(const Value& resource_class, ObjectFinder& objects) {
  return objects.parameters(resource_class["parametersRef"], "", {});
}

Result<Value> Allocator::claim_parameters(const PendingClaim& pending, ObjectFinder& objects) {
  return objects.parameters(pending.claim["spec"]["parametersRef"], "", {});
}

std::string describe_reasons(const std::map<std::string, std::string>& reasons) {
  constexpr std::size_t kMostNames = 3;
  constexpr std::size_t kLongest = 1000;  // events have 1024 bytes
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const auto& [node, reason] : reasons) {
    auto group = std::find_if(groups.begin(), groups.end(), [&, &reason = reason](const auto& one) {
      return one.first == reason;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {reason, {}});
    group->second.push_back(node);
  }
  std::string out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& [reason, nodes] = groups[i];
    const std::size_t more = nodes.size() > kMostNames ? nodes.size() - kMostNames : 0;
    nodes.resize(nodes.size() - more);
    std::string text = join(nodes, ", ");
    if (more > 0) append(text, " and ", more, " more");
    append(text, ": ", reason);
    if (i > 0 && out.size() + text.size() > kLongest) {
      append(out, "; and ", groups.size() - i, " more reasons");
      break;
    }
    append(out, out.empty() ? "" : "; ", text);
  }
  return out;
}

Result<> Allocator::deallocate(const Value&) { return success(); }

}  // namespace dibs::driver
