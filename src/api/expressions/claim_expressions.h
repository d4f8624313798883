#pragma once
// Expressions of an AuthenticationConfiguration: over the claims of a token (`claims`), or over the
// user that was made of them (`user`).

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::cel {
class Program;
}

namespace dibs::api {

enum class ExpressionOver : char { claims, user };

/// Immutable, thread-safe.
class ClaimExpression {
 public:
  /// `judges`: it must be a boolean. Errors: invalid, in the words of the API.
  static Result<ClaimExpression> compile(ExpressionOver over, std::string_view text, bool judges);

  const std::string& text() const { return text_; }
  /// Whether it reads claims.NAME somewhere.
  bool reads(std::string_view name) const;

  // Errors: invalid, of the evaluation or of what came out.
  Result<bool> judge(const json::Value& value) const;
  Result<std::string> string(const json::Value& value) const;
  /// A string is a list of one; empty ones are left out; null is none.
  Result<std::vector<std::string>> strings(const json::Value& value) const;

 private:
  std::string text_;
  std::vector<std::string> reads_;
  std::shared_ptr<const cel::Program> program_;
};

}  // namespace dibs::api
