#include "drivers/net/control/allocator.h"

#include "base/strings.h"
#include "client/client.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {

using driver::Allocation;
using driver::PendingClaim;
using json::Value;

Result<Value> NetAllocator::class_parameters(const Value&, driver::ObjectFinder&) {
  return Value();  // as ever: what a class refers to is not looked at
}

Result<Value> NetAllocator::claim_parameters(const PendingClaim& pending,
                                             driver::ObjectFinder& objects) {
  const Value& reference = pending.claim["spec"]["parametersRef"];
  if (reference.is_null()) return Value();
  if (reference["apiGroup"].as_string() != kGroup) {
    return Error::invalid(cat("incorrect API Group: ", reference["apiGroup"].as_string()));
  }
  if (reference["kind"].as_string() != "SpiderClaimParameter") {
    return Error::invalid(cat("incorrect kind: ", reference["kind"].as_string()));
  }
  const auto name_space = client::namespace_of(pending.claim);
  const auto name = reference["name"].as_string();
  auto found = objects.get({std::string(kGroup), "SpiderClaimParameter"}, name_space, name);
  if (!found) {
    return found.error().within(
        cat("failed to getting SpiderClaimParameters ", name_space, "/", name));
  }
  return found;
}

std::vector<Result<Allocation>> NetAllocator::allocate(const std::vector<PendingClaim>& claims,
                                                       const std::string& node,
                                                       const driver::Taken&) {
  std::vector<Result<Allocation>> out;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (node.empty()) {
      out.push_back(Error::invalid("TODO: immediate allocations not yet supported"));
    } else {
      out.push_back(Allocation{{}, driver::only_on(node), false});
    }
  }
  return out;
}

Result<driver::Unsuitable> NetAllocator::unsuitable_nodes(const Value&,
                                                          const std::vector<PendingClaim>& claims,
                                                          const std::vector<std::string>&,
                                                          const driver::Taken&) {
  return driver::Unsuitable{driver::NodeLists(claims.size())};
}

}  // namespace dibs::drivers::net
