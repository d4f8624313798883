#pragma once
// Result<T>: a value or an Error, from the lowest layer to the HTTP reply.
//
// An Error carries what an API Status needs (reason, message, details), so a server maps it without
// a table per handler. Expected outcomes are values, not errors.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dibs {

enum class Code : std::uint8_t {
  bad_request,
  unauthorized,
  forbidden,
  not_found,
  method_not_allowed,
  not_acceptable,
  already_exists,
  conflict,
  gone,
  expired,
  too_large,
  unsupported_media_type,
  invalid,
  too_many_requests,
  internal,
  plain,  // 500 without a reason: what upstream gives for an error that is not a Status
  unavailable,
  timeout,
  server_timeout,
};

/// The HTTP status and the API reason of a code ("" for Code::plain).
int http_status(Code code);
std::string_view reason(Code code);
class Error;
/// The same of an error, which may have its own.
int http_status(const Error& error);
std::string_view reason(const Error& error);

/// One entry of Status.details.causes.
struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

/// Status.details: what the error is about.
struct ErrorDetails {
  std::string name;
  std::string group;
  std::string kind;
  std::string uid;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;
  /// Of a refusal that somebody outside has worded: his HTTP status and reason, instead of those of
  /// the code. 0: the code's.
  int status = 0;
  std::string reason = {};
};

class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Error(Code code, std::string message, ErrorDetails details)
      : code_(code),
        message_(std::move(message)),
        details_(std::make_shared<const ErrorDetails>(std::move(details))) {}

  static Error bad_request(std::string message) { return {Code::bad_request, std::move(message)}; }
  static Error forbidden(std::string message) { return {Code::forbidden, std::move(message)}; }
  static Error not_found(std::string message) { return {Code::not_found, std::move(message)}; }
  static Error conflict(std::string message) { return {Code::conflict, std::move(message)}; }
  static Error already_exists(std::string message) {
    return {Code::already_exists, std::move(message)};
  }
  static Error gone(std::string message) { return {Code::gone, std::move(message)}; }
  static Error expired(std::string message) { return {Code::expired, std::move(message)}; }
  static Error invalid(std::string message) { return {Code::invalid, std::move(message)}; }
  static Error internal(std::string message) { return {Code::internal, std::move(message)}; }
  static Error plain(std::string message) { return {Code::plain, std::move(message)}; }
  static Error unavailable(std::string message) { return {Code::unavailable, std::move(message)}; }
  static Error timeout(std::string message) { return {Code::timeout, std::move(message)}; }
  static Error too_large(std::string message) { return {Code::too_large, std::move(message)}; }

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  /// Null when the error names no object.
  const ErrorDetails* details() const { return details_.get(); }

  /// The same error with "context: " before its message.
  Error within(std::string_view context) const;

 private:
  Code code_;
  std::string message_;
  std::shared_ptr<const ErrorDetails> details_;
};

struct Nothing {};

template <typename T = Nothing>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, T> &&
           !std::is_same_v<std::decay_t<U>, Error> && !std::is_same_v<std::decay_t<U>, Result<T>>)
      Result(U&& value)
      : state_(std::in_place_index<0>, T(std::forward<U>(value))) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

inline Result<> success() { return Nothing{}; }

#define DIBS_CONCAT_INNER(a, b) a##b
#define DIBS_CONCAT(a, b) DIBS_CONCAT_INNER(a, b)

/// DIBS_TRY(auto x, expr): binds the value of expr, or returns its error.
#define DIBS_TRY(declaration, expression) \
  DIBS_TRY_INNER(DIBS_CONCAT(dibs_try_, __COUNTER__), declaration, expression)
#define DIBS_TRY_INNER(temporary, declaration, expression)  \
  auto temporary = (expression);                            \
  if (!temporary.ok()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()

/// DIBS_CHECK(expr): returns the error of expr, if it has one.
#define DIBS_CHECK(expression)                                                                     \
  do {                                                                                             \
    if (auto dibs_check_ = (expression); !dibs_check_.ok()) return std::move(dibs_check_).error(); \
  } while (false)

}  // namespace dibs
