#include "cel/libraries/format.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"

namespace dibs::cel {
namespace {

std::string evaluated(const Environment& environment, std::string_view source) {
  const Compilation made = environment.compile(source);
  if (made.program == nullptr) return made.issues.front().message;
  const Value value = made.program->evaluate({}).value;
  return cat(value.is_error() ? "error: " : "", value.text());
}

struct Case {
  std::string_view expression;
  std::string_view wanted;
};

TEST(Format, of_kubernetes_writes_literals_and_local_numbers) {
  const Environment environment = kubernetes_environment();
  for (const Case& test : {
           Case{"'%s %s'.format(['a', 1])", "a 1"},
           Case{"'%s'.format([['a', 1.5, b'x', null, true]])",
                "[\"a\", 1.500000, b\"x\", null, "
                "true]"},
           Case{"'%s'.format([{'b': [1], 'a': duration('1m')}])",
                "{\"a\":duration(\"60s\"), \"b\":[1]}"},
           Case{"'%s'.format([[timestamp('2020-01-01T00:00:00Z')]])",
                "[timestamp(\"2020-01-01T00:00:00Z\")]"},
           Case{"'%s'.format([1.5])", "1.5"},
           Case{"'%.2f'.format([1234567.891])", "1,234,567.89"},
           Case{"'%.1f'.format([-999.0])", "-999.0"},
           Case{"'%.1f'.format([-1000.0])", "-1,000.0"},
           Case{"'%f'.format(['Infinity'])", "∞"},
           Case{"'%e'.format([1234.5])", "1.234500×10⁰³"},
           Case{"'%e'.format([0.00012])", "1.200000×10⁻⁰⁴"},
           Case{"'%.20e'.format([1.0])", "       1.000000×10⁰⁰"},
           Case{"'%x %X %o %b'.format([255, 'az', 8, true])", "ff 617A 10 1"},
           Case{"'%%'.format([])", "%"},
           Case{"'%d'.format([dyn(1.5)])",
                "error: error during formatting: decimal clause can only be used on integers, was "
                "given double"},
           Case{"'%f'.format([1])",
                "error during formatting: fixed-point clause can only be used on doubles, was "
                "given int"},
           Case{"'%s'.format([[1], 2])",
                "too many arguments supplied to string.format (expected 1, got 2)"},
           Case{"'%s'.format([[quantity('1')]])",
                "error during formatting: string clause can only be used on strings, bools, bytes, "
                "ints, doubles, maps, lists, types, durations, and timestamps, was given "
                "kubernetes.Quantity"},
           Case{"'%'.format([1])", "unexpected end of string"},
           Case{"'%d %d'.format([1])", "index 1 out of range"},
           Case{"'%.'.format([1])",
                "could not parse formatting clause: error while parsing precision: could not find "
                "end of precision specifier"},
           Case{"'%.f'.format([1.0])",
                "could not parse formatting clause: error while parsing precision: error while "
                "converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax"},
           Case{"'%z'.format([1])",
                "could not parse formatting clause: unrecognized formatting clause \"z\""},
       })
    EXPECT_EQ(evaluated(environment, test.expression), test.wanted) << test.expression;
}

TEST(Format, of_the_fourth_version_is_plain) {
  Environment environment = Environment::standard();
  add_strings(environment);
  for (const Case& test : {
           Case{"'%s'.format([['a', 1.5]])", "[a, 1.5]"},
           Case{"'%s'.format([{'a': 1}])", "{a: 1}"},
           Case{"'%.2f'.format([1234.5])", "1234.50"},
           Case{"'%.2e'.format([1234.5])", "1.23e+03"},
           Case{"'%f'.format([1])", "1.000000"},
       })
    EXPECT_EQ(evaluated(environment, test.expression), test.wanted) << test.expression;
}

TEST(Format, precision_is_bounded) {
  const Environment environment = kubernetes_environment();
  EXPECT_EQ(evaluated(environment, "'%.1000000000f'.format([1.0])"),
            "could not parse formatting clause: precision too large");
}

}  // namespace
}  // namespace dibs::cel
