#include "base/result.h"

#include <gtest/gtest.h>

namespace dibs {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error::invalid("odd");
  return n / 2;
}

Result<int> quarter(int n) {
  DIBS_TRY(int h, half(n));
  DIBS_CHECK(half(h));
  return h / 2;
}

TEST(Result, passes_values_and_errors_through) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().code(), Code::invalid);
}

TEST(Error, within_puts_context_first_and_keeps_details) {
  ErrorDetails details;
  details.name = "x";
  Error error(Code::conflict, "lost", details);

  Error outer = error.within("saving");

  EXPECT_EQ(outer.message(), "saving: lost");
  EXPECT_EQ(outer.code(), Code::conflict);
  ASSERT_NE(outer.details(), nullptr);
  EXPECT_EQ(outer.details()->name, "x");
}

TEST(Code, maps_to_http_and_reason) {
  struct Case {
    Code code;
    int status;
    std::string_view reason;
  };
  for (const Case& c : std::initializer_list<Case>{{Code::bad_request, 400, "BadRequest"},
                                                   {Code::already_exists, 409, "AlreadyExists"},
                                                   {Code::conflict, 409, "Conflict"},
                                                   {Code::expired, 410, "Expired"},
                                                   {Code::too_large, 413, "RequestEntityTooLarge"},
                                                   {Code::invalid, 422, "Invalid"},
                                                   {Code::internal, 500, "InternalError"},
                                                   {Code::plain, 500, ""},
                                                   {Code::server_timeout, 500, "ServerTimeout"},
                                                   {Code::unavailable, 503, "ServiceUnavailable"},
                                                   {Code::timeout, 504, "Timeout"}}) {
    EXPECT_EQ(http_status(c.code), c.status);
    EXPECT_EQ(reason(c.code), c.reason);
  }
}

}  // namespace
}  // namespace dibs
