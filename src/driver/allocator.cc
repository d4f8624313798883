#include "driver/allocator.h"

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

Result<> Allocator::deallocate(const Value&) { return success(); }

}  // namespace dibs::driver
