#pragma once
// Classic claims: which nodes can serve a pod, and what it gets there.

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/allocator.h"

namespace dibs::drivers::net {

struct AllocatorOptions {
  bool allow_immediate = false;
};

class NetAllocator : public driver::Allocator {
 public:
  explicit NetAllocator(AllocatorOptions options) : options_(options) {}

  Result<json::Value> class_parameters(const json::Value& resource_class,
                                       driver::ObjectFinder& objects) override;
  Result<json::Value> claim_parameters(const driver::PendingClaim& pending,
                                       driver::ObjectFinder& objects) override;
  std::vector<Result<driver::Allocation>> allocate(const std::vector<driver::PendingClaim>& claims,
                                                   const std::string& node,
                                                   const driver::Taken& taken) override;
  Result<driver::Unsuitable> unsuitable_nodes(const json::Value& pod,
                                              const std::vector<driver::PendingClaim>& claims,
                                              const std::vector<std::string>& nodes,
                                              const driver::Taken& taken) override;

 private:
  const AllocatorOptions options_;
};

}  // namespace dibs::drivers::net
