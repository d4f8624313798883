#pragma once
// Kinds that are questions: who is this, may he do that. Answered, never stored.

#include "base/result.h"
#include "server/access.h"
#include "server/context.h"

namespace dibs::server {

class Reviews {
 public:
  explicit Reviews(Access& access) : access_(access) {}

  bool handles(const Resource& resource) const;
  Result<net::Response> handle(Context& context);

 private:
  Result<Value> subject_access(Context& context, const Value& review);
  Result<Value> self_rules(Context& context, const Value& review);
  Result<Value> token(const Value& review);

  Access& access_;
};

}  // namespace dibs::server
