#pragma once
// Regular expressions of schemas, in the syntax of Go's regexp package.

#include <memory>
#include <string>
#include <string_view>

namespace dibs::api {

/// Compiled when first used: a schema may have many patterns and most objects touch few.
/// Thread-safe.
class Pattern {
 public:
  explicit Pattern(std::string text);
  ~Pattern();

  const std::string& text() const { return text_; }
  /// True when the pattern occurs anywhere in `value`; an invalid pattern matches nothing.
  bool occurs_in(std::string_view value) const;

  /// What Go says of an invalid pattern: "error parsing regexp: missing closing ): `(`"; "" when it
  /// is valid.
  static std::string fault_of(const std::string& text);

 private:
  struct Compiled;
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace dibs::api
