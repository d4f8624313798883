#include "json/go_print.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::json {
namespace {

struct PrintCase {
  const char* json;
  const char* value;   // %v
  const char* syntax;  // %#v
  const char* type;    // %T
};

class GoPrint : public ::testing::TestWithParam<PrintCase> {};

TEST_P(GoPrint, IsThatOfFmt) {
  const PrintCase& c = GetParam();
  const Value value = *parse(c.json);
  EXPECT_EQ(go_value(value), c.value);
  EXPECT_EQ(go_syntax(value), c.syntax);
  EXPECT_EQ(go_type(value), c.type);
}

INSTANTIATE_TEST_SUITE_P(
    Values, GoPrint,
    ::testing::Values(
        PrintCase{"null", "<nil>", "interface {}(nil)", "<nil>"},
        PrintCase{"true", "true", "true", "bool"}, PrintCase{"7", "7", "7", "int64"},
        PrintCase{"0.5", "0.5", "0.5", "float64"},
        PrintCase{R"("a b")", "a b", R"("a b")", "string"},
        PrintCase{R"(["x",1])", "[x 1]", R"([]interface {}{"x", 1})", "[]interface {}"},
        PrintCase{R"({"b":[],"a":null})", "map[a:<nil> b:[]]",
                  R"(map[string]interface {}{"a":interface {}(nil), "b":[]interface {}{}})",
                  "map[string]interface {}"}));

TEST(GoFloat, HasAnExponentBeyondSixDigits) {
  EXPECT_EQ(go_float(0), "0");
  EXPECT_EQ(go_float(-2.5), "-2.5");
  EXPECT_EQ(go_float(0.0001), "0.0001");
  EXPECT_EQ(go_float(0.00001), "1e-05");
  EXPECT_EQ(go_float(999999), "999999");
  EXPECT_EQ(go_float(1e6), "1e+06");
  EXPECT_EQ(go_float(123456789.5), "1.234567895e+08");
}

TEST(GoSyntax, NamesTheKeysOfTheParser) {
  EXPECT_EQ(go_syntax(*parse(R"({"a":{}})"), GoKeys::any),
            R"(map[interface {}]interface {}{"a":map[interface {}]interface {}{}})");
}

TEST(GoKind, IsTheWordOfEncodingJson) {
  EXPECT_EQ(go_kind(Value(1.5)), "number");
  EXPECT_EQ(go_kind(Value::array()), "array");
  EXPECT_EQ(go_kind(Value()), "null");
}

}  // namespace
}  // namespace dibs::json
