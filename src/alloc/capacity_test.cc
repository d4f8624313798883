#include "alloc/capacity.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

struct Row {
  const char* capacity;  // of the device
  const char* request;   // of it; "" for none
  bool fractional;
  const char* consumed;  // "" where it is refused, "!…" for an error
};

constexpr Row kRows[] = {
    // Without a policy: what is asked, else all of it.
    {R"({"value":"4"})", "3", false, "3"},
    {R"({"value":"4"})", "5", false, ""},
    {R"({"value":"4Gi"})", "", false, "4Gi"},
    {R"({"value":"4"})", "-1", false, R"(!capacity "m": capacity value is negative)"},
    // A default, a minimum, steps.
    {R"({"value":"9","requestPolicy":{"default":"2"}})", "", false, "2"},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"3"}}})", "1",
     false, "2"},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"3"}}})", "3",
     false, "5"},
    {R"({"value":"9","requestPolicy":{"default":"2",
     "validRange":{"min":"2","max":"6","step":"3"}}})",
     "6", false, ""},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2"}}})", "1500m", false,
     "2"},
    // Values.
    {R"({"value":"9","requestPolicy":{"default":"2","validValues":["2","4"]}})", "3", false, "4"},
    {R"({"value":"9","requestPolicy":{"default":"2","validValues":["2","4"]}})", "5", false, ""},
    // Fractions round up to whole units unless they may not.
    {R"({"value":"1","requestPolicy":{"default":"200m",
     "validRange":{"min":"200m","step":"100m"}}})",
     "250m", false, "1"},
    {R"({"value":"1","requestPolicy":{"default":"200m",
     "validRange":{"min":"200m","step":"100m"}}})",
     "250m", true, "300m"},
    {R"({"value":"1","requestPolicy":{"default":"200m",
     "validRange":{"min":"200m","step":"100m"}}})",
     "950m", true, "1"},
    // Beyond the arithmetic of a range.
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"2"}}})",
     "18446744073709551616", false,
     R"(!capacity "m": capacity request cannot be represented in the device's range arithmetic: )"
     "request 18446744073709551616 exceeds MaxInt64"},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"2"}}})",
     "9223372036854775807", false,
     R"(!capacity "m": capacity request cannot be represented in the device's range arithmetic: )"
     "rounding request 9223372036854775807 up to the next step passes MaxInt64"},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"500m"}}})",
     "2500u", true, "2"},
    {R"({"value":"9","requestPolicy":{"default":"2","validRange":{"min":"2","step":"500m"}}})",
     "2000001u", true,
     R"(!capacity "m": capacity request cannot be represented in the device's range arithmetic: )"
     "request 2000001u is not a representable milli value"},
};

TEST(Capacity, is_taken_as_the_policy_says) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(cat(row.capacity, " for ", row.request));
    const Result<json::Value> source = json::parse(
        cat(R"({"spec":{"devices":[{"name":"d","capacity":{"m":)", row.capacity, "}}]}}"));
    ASSERT_TRUE(source.ok());
    const Slice slice = Slice::read(*source);
    const Device& device = slice.devices[0];
    DeviceRequest request;
    if (*row.request != '\0') {
      const Quantity quantity = *Quantity::parse(row.request);
      request.capacity.push_back({"m", quantity, to_amount(quantity)});
    }

    const Intake found = intake(device, request, row.fractional);

    if (*row.consumed == '!') {
      EXPECT_EQ(found.kind, Intake::Kind::error);
      EXPECT_EQ(found.error, row.consumed + 1);
    } else if (*row.consumed == '\0') {
      EXPECT_EQ(found.kind, Intake::Kind::refused);
    } else {
      ASSERT_EQ(found.kind, Intake::Kind::fits) << found.error;
      EXPECT_EQ(consumed_quantity(device.capacities[0], request, found.amounts[0]).str(),
                row.consumed);
    }
  }
}

TEST(Capacity, that_the_device_lacks_is_refused) {
  const Slice slice =
      Slice::read(*json::parse(R"({"spec":{"devices":[{"name":"d","capacity":{}}]}})"));
  DeviceRequest request;
  request.capacity.push_back({"m", Quantity(1), to_amount(Quantity(1))});

  EXPECT_EQ(intake(slice.devices[0], request, false).kind, Intake::Kind::refused);
}

TEST(Amount, is_exact_to_the_billionth) {
  EXPECT_TRUE(to_amount(*Quantity::parse("1")) == kAmountUnit);
  EXPECT_TRUE(to_amount(*Quantity::parse("-1500m")) == -kAmountUnit * 3 / 2);
  EXPECT_TRUE(to_amount(*Quantity::parse("1n")) == 1);
  const Amount large = to_amount(*Quantity::parse("18446744073709551616"));
  EXPECT_TRUE(large / kAmountUnit > Amount{9'223'372'036'854'775'807});
  EXPECT_TRUE(large + kAmountUnit == to_amount(*Quantity::parse("18446744073709551617")));
}

}  // namespace
}  // namespace dibs::alloc
