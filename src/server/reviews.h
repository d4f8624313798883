#pragma once
// Kinds that are questions (api::Question) about access: who is this, may he do that. Answered,
// never stored.

#include "base/result.h"
#include "server/access.h"
#include "server/context.h"

namespace dibs::server {

class Reviews {
 public:
  explicit Reviews(Access& access) : access_(access) {}

  Result<Response> handle(Context& context);

 private:
  Result<Value> answered(Context& context, const Value& review);
  Value sender(const Context& context, Value review) const;
  Result<Value> subject_access(Context& context, const Value& review);
  Result<Value> self_rules(Context& context, const Value& review);
  Result<Value> token(const Value& review);

  Access& access_;
};

}  // namespace dibs::server
