#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"

namespace dibs::cel {
namespace {

const Environment& environment() {
  static const auto* const made = [] {
    auto* fresh = new Environment(kubernetes_environment());
    add_bindings(*fresh);
    fresh->variable("x", {});
    return fresh;
  }();
  return *made;
}

Evaluation evaluate(std::string_view source, const Limits& limits = {}) {
  const Compilation compiled = environment().compile(source);
  EXPECT_NE(compiled.program, nullptr) << format_issues(source, compiled.issues);
  if (compiled.program == nullptr) return {};
  const Value x = Value::integer(7);
  Evaluation made = compiled.program->evaluate({&x, 1}, limits);
  // The result must not borrow from the program when it goes out of this function.
  if (made.value.is_error()) made.value = Value::error(std::string(made.value.text()));
  return made;
}

std::string error_of(std::string_view source) {
  const Value value = evaluate(source).value;
  return value.is_error() ? std::string(value.text()) : "none";
}

TEST(Evaluator, holds_what_the_language_promises) {
  for (const std::string_view source : {"1/0 == 1 || true",
                                        "!(1/0 == 1 && false)",
                                        "[1, 2, 0].exists(i, 4/i == 2)",
                                        "cel.bind(y, 1/0, true)",
                                        "quantity('1Gi') == quantity('1024Mi')",
                                        "quantity('1Gi').isGreaterThan(quantity('1G'))",
                                        "!quantity('1.5Gi').isInteger()",
                                        "semver('1.2.3').isLessThan(semver('1.10.0'))",
                                        "semver('v1.2', true).minor() == 2",
                                        "url('https://[::1]:80/a?b=c').getHostname() == '::1'",
                                        "!isURL('../a')",
                                        "'abcabc'.findAll('b.') == ['bc', 'bc']",
                                        "'abc'.find('x') == ''",
                                        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
                                        "[3, 1, 2].sort() == [1, 2, 3]",
                                        "['b', 'a'].sortBy(s, s) == ['a', 'b']",
                                        "[1, 2].sum() == 3",
                                        "[2, 1].min() == 1",
                                        "sets.intersects([1, 2], [2, 3])",
                                        "lists.range(3) == [0, 1, 2]",
                                        "optional.of(1).optMap(v, v + 1).orValue(0) == 2",
                                        "type(x) == int",
                                        "x == 7.0",
                                        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}"}) {
    const Value value = evaluate(source).value;
    EXPECT_TRUE(value.is_true()) << source << (value.is_error() ? cat(": ", value.text()) : "");
  }
}

TEST(Evaluator, gives_the_errors_that_users_know) {
  EXPECT_EQ(error_of("9223372036854775807 + 1"), "integer overflow");
  EXPECT_EQ(error_of("{'a': 1}['b']"), "no such key: b");
  EXPECT_EQ(error_of("[1][3]"), "index out of bounds: 3");
  EXPECT_EQ(error_of("x.substring(0, 2)"), "no such overload: substring(int, int, int)");
  EXPECT_EQ(error_of("x.startsWith('a')"), "no such overload");
  EXPECT_EQ(error_of("x.all(i, true)"), "got 'types.Int', expected iterable type");
  EXPECT_EQ(error_of("quantity('1.5Gi').asInteger()"), "cannot convert value to integer");
  EXPECT_EQ(error_of("dyn(semver('1.2.3')) == x"), "no such overload");
  EXPECT_EQ(error_of("optional.none().value()"), "optional.none() dereference");
}

TEST(Evaluator, stops_at_its_budget_and_no_logic_absorbs_that) {
  Limits limits;
  limits.cost = 1000;

  const Evaluation made = evaluate("lists.range(1000000).all(i, i >= 0) || true", limits);

  EXPECT_TRUE(made.interrupted);
  EXPECT_EQ(made.value.text(), "operation cancelled: actual cost limit exceeded");
  EXPECT_LT(made.cost, 1'100'000u);
}

TEST(Evaluator, stops_when_cancelled) {
  const std::atomic<bool> cancelled = true;
  Limits limits;
  limits.cancelled = &cancelled;

  const Evaluation made = evaluate("lists.range(1000000000).all(i, i >= 0)", limits);

  EXPECT_TRUE(made.interrupted);
  EXPECT_EQ(made.value.text(), "operation interrupted");
}

TEST(Evaluator, does_not_repeat_a_receiver_that_a_macro_names_twice) {
  std::string source = "optional.of(1)";
  for (int i = 0; i < 60; ++i) source += ".optMap(v, v + 1)";

  EXPECT_TRUE(evaluate(source + ".value() == 61").value.is_true());
}

TEST(Value, small_and_shared) {
  const Value text = Value::string("a longer piece of text");
  const Value part = text.piece(text.text().substr(2, 6));

  EXPECT_EQ(part.text(), "longer");
  EXPECT_TRUE(
      equal(Value::list({Value::integer(1), part}), Value::list({Value::real(1), part})).is_true());
}

TEST(Value, map_finds_numbers_by_value) {
  MapBuilder builder;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(builder.add(Value::integer(i), Value::integer(-i)));
  EXPECT_FALSE(builder.add(Value::uinteger(5), Value::null()));
  const Value map = builder.build();

  Value found;
  EXPECT_TRUE(map.as_map().find(Value::real(42), found));
  EXPECT_EQ(found.as_integer(), -42);
  EXPECT_FALSE(map.as_map().find(Value::real(42.5), found));
}

}  // namespace
}  // namespace dibs::cel
