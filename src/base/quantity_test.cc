#include "base/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace dibs {
namespace {

Quantity q(std::string_view text) {
  auto parsed = Quantity::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Quantity();
}

TEST(Quantity, writes_the_canonical_form) {
  struct Case {
    const char* text;
    const char* shown;
  };
  for (const Case& c : std::initializer_list<Case>{{"0", "0"},
                                                   {"0Ki", "0"},
                                                   {"-0", "0"},
                                                   {"1000m", "1"},
                                                   {"0.5", "500m"},
                                                   {"1024Mi", "1Gi"},
                                                   {"1e3", "1e3"},
                                                   {"1E3", "1E3"},
                                                   {"1000", "1k"},
                                                   {"1500", "1500"},
                                                   {"100m", "100m"},
                                                   {"1.5", "1500m"},
                                                   {"1.5Gi", "1536Mi"},
                                                   {"0.5Mi", "512Ki"},
                                                   {"512", "512"},
                                                   {"1023Ki", "1023Ki"},
                                                   {"8Ki", "8Ki"},
                                                   {"100.035Ki", "102435840m"},
                                                   {"0.001Ki", "1024m"},
                                                   {"3.001n", "4n"},
                                                   {"0.0000000001", "1n"},
                                                   {"-0.9n", "-1n"},
                                                   {"-1.5", "-1500m"},
                                                   {"1E", "1E"},
                                                   {"12E", "12E"},
                                                   {"1000E", "1e21"},
                                                   {"1e14", "100e12"},
                                                   {"1.3E+6", "1300e3"},
                                                   {"0.5e-9", "1e-9"},
                                                   {"1.1E-9", "2e-9"},
                                                   {"9Ei", "9223372036854775807"},
                                                   {"-9Ei", "-9223372036854775807"},
                                                   {"8Ei", "9223372036854775807"},
                                                   {"7Ei", "7Ei"},
                                                   {"0.000000000001Ki", "2n"},
                                                   {"18446744073709551616", "18446744073709551616"},
                                                   {"10000000000000000000000", "10e21"},
                                                   {"1.2345", "1234500u"},
                                                   {"1.2345678901234567890123", "1234567891n"},
                                                   {"1e1000000", "10e999999"},
                                                   {".", "0"},
                                                   {"Ki", "0"},
                                                   {"1.", "1."},
                                                   {"0.00500", "5m"},
                                                   {"2000Mi", "2000Mi"},
                                                   {"100Ti", "100Ti"}}) {
    EXPECT_EQ(q(c.text).str(), c.shown) << c.text;
  }
}

TEST(Quantity, keeps_spellings_that_pass_as_canonical) {
  EXPECT_EQ(q("1.500").str(), "1.500");
  EXPECT_EQ(q("1.500").canonical(), "1500m");
  EXPECT_EQ(q("+1").str(), "+1");
  EXPECT_EQ(q("01").str(), "01");
}

TEST(Quantity, refuses_broken_text) {
  const char* format =
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  for (const char* text : {"", "1.1.M", "1+1.0M", "aoeu", "1 ", " 1", "0.1am", "1Kib", "٣"}) {
    auto parsed = Quantity::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message(), format) << text;
  }
  for (const char* text :
       {"0.1mi", "1i", "1e", "1e+", "-3.01e-", "1kK", "1m5", "1e99999999999999999999"}) {
    auto parsed = Quantity::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message(), "unable to parse quantity's suffix") << text;
  }
}

TEST(Quantity, compares_by_amount) {
  EXPECT_EQ(q("1Gi"), q("1024Mi"));
  EXPECT_EQ(q("1"), q("1000m"));
  EXPECT_EQ(q("0"), q("0Ki"));
  EXPECT_LT(q("50m"), q("100m"));
  EXPECT_GT(q("10000T"), q("100Gi"));
  EXPECT_LT(q("-1"), q("1n"));
  EXPECT_LT(q("-2k"), q("-1k"));
  EXPECT_LT(q("18446744073709551615"), q("18446744073709551616"));
  EXPECT_LT(q("1E"), q("1e1000000"));
}

TEST(Quantity, converts_to_integers_rounding_away_from_zero) {
  EXPECT_EQ(q("1.1").value(), 2);
  EXPECT_EQ(q("-1.1").value(), -2);
  EXPECT_EQ(q("1Gi").value(), 1073741824);
  EXPECT_EQ(q("1.0005").milli_value(), 1001);
  EXPECT_EQ(q("2").milli_value(), 2000);
  EXPECT_EQ(q("1n").value(), 1);
  EXPECT_EQ(q("100E").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(q("-100E").value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(q("1e2000000000").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(q("3k").exact(), 3000);
  EXPECT_EQ(q("1500m").exact(), std::nullopt);
  EXPECT_DOUBLE_EQ(q("1500m").approximate(), 1.5);
}

TEST(Quantity, reads_back_the_largest_exponents) {
  for (const char* text : {"1000e2147483647", "1000e2147483646", "10e2147483647",
                           "123456789012345678901234e2147483647", "1e2147483647",
                           "100000000000000000000000000000000000000000000000000e2147483647"}) {
    const Quantity large = q(text);
    EXPECT_EQ(q(large.canonical()), large) << text;
    EXPECT_EQ(q(large.canonical()).canonical(), large.canonical()) << text;
    EXPECT_EQ(large.value(), std::numeric_limits<std::int64_t>::max());
  }
}

TEST(Quantity, writes_a_sum_of_unlike_amounts_in_few_characters) {
  Quantity sum = q("1Gi");
  sum.add(q("1e2147483646"));

  EXPECT_EQ(sum.str(), "1e2147483646");
}

TEST(Quantity, adds_and_subtracts) {
  struct Case {
    const char* a;
    const char* b;
    const char* sum;
    const char* difference;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"1Gi", "512Mi", "1536Mi", "512Mi"},
           {"0", "1Gi", "1Gi", "-1Gi"},
           {"100m", "900m", "1", "-800m"},
           {"1", "1n", "1000000001n", "999999999n"},
           {"9223372036854775807", "1", "9223372036854775808", "9223372036854775806"},
           {"-5", "5", "0", "-10"},
           {"99", "1", "100", "98"},
           {"1e3", "1", "1001", "999"}}) {
    Quantity sum = q(c.a);
    sum.add(q(c.b));
    EXPECT_EQ(sum.str(), c.sum);
    Quantity difference = q(c.a);
    difference.subtract(q(c.b));
    EXPECT_EQ(difference.str(), c.difference);
  }
}

}  // namespace
}  // namespace dibs
