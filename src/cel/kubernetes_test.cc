#include "cel/kubernetes.h"

#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "cel/libraries/extensions.h"

namespace dibs::cel {
namespace {

const Environment& release(int minor) {
  static auto* const made = new std::map<int, Environment>;
  const auto found = made->find(minor);
  if (found != made->end()) return found->second;
  return made->emplace(minor, kubernetes_environment(minor)).first->second;
}

std::string issues_in(int minor, std::string_view source) {
  return format_issues(source, release(minor).compile(source).issues);
}

TEST(Kubernetes, each_release_has_its_libraries) {
  const struct {
    std::string_view expression;
    int since;
    std::string_view problem;  // before that
  } cases[] = {
      {"url('https://a').getHost() == 'a'", 26, ""},
      {"isURL('x')", 26, ""},
      {"'a'.find('a') == 'a'", 26, ""},
      {"'a'.findAll('a') == ['a']", 26, ""},
      {"[1].sum() == 1 && [1].isSorted() && [1].indexOf(1) == 0", 26, ""},
      {"'a'.charAt(0) == 'a' && 'a'.lowerAscii() == 'a' && ['a'].join() == 'a'", 26, ""},
      {"'a'.replace('a', 'b').split(',').size() == 1 && ' a '.trim() == 'a'", 26, ""},
      {"1 < 2u", 28, "found no matching overload for '_<_' applied to '(int, uint)'"},
      {"1.5 >= 1", 28, "found no matching overload for '_>=_' applied to '(double, int)'"},
      {"optional.of(1).hasValue()", 28, "undeclared reference to 'optional'"},
      {"{'a': 1}.?a.orValue(1) == 1", 28, "unsupported syntax '.?'"},
      {"{'a': 1}[?'a'].hasValue()", 28, "unsupported syntax '[?'"},
      {"[?optional.none()].size() == 0", 28, "unsupported syntax '?'"},
      {"quantity('1').isInteger()", 28, "undeclared reference to 'quantity'"},
      {"isQuantity('1')", 28, "undeclared reference to 'isQuantity'"},
      {"'%d'.format([1]) == '1'", 29, "undeclared reference to 'format'"},
      {"strings.quote('a') == 'a'", 29, "undeclared reference to 'strings'"},
      {"sets.contains([1], [1])", 29, "undeclared reference to 'sets'"},
      {"ip('1.1.1.1').family() == 4", 30, "undeclared reference to 'ip'"},
      {"isIP('1.1.1.1') && ip.isCanonical('1.1.1.1')", 30, "undeclared reference to 'isIP'"},
      {"cidr('10.0.0.0/8').containsIP('10.1.1.1')", 30, "undeclared reference to 'cidr'"},
      {"format.dns1123Label().validate('a').hasValue()", 31, "undeclared reference to 'format'"},
      {"format.named('uuid').hasValue()", 31, "undeclared reference to 'format'"},
      {"[1].all(i, v, v == i)", 32, "undeclared reference to 'i'"},
      {"[1].transformList(i, v, v + i) == [1]", 32, "undeclared reference to 'i'"},
      {"{'a': 1}.transformMap(k, v, v) == {'a': 1}", 32, "undeclared reference to 'k'"},
      {"semver('1.0.0').major() == 1", 33, "undeclared reference to 'semver'"},
      {"isSemver('v1', true)", 33, "undeclared reference to 'isSemver'"},
      {"[1].first().hasValue()", 33, "undeclared reference to 'first'"},
      {"[1, 2].slice(0, 1) == [1]", 34, "undeclared reference to 'slice'"},
      {"[[1]].flatten() == [1]", 34, "undeclared reference to 'flatten'"},
      {"[1].sort() == [1]", 34, "undeclared reference to 'sort'"},
      {"[1].sortBy(x, -x) == [1]", 34, "undeclared reference to 'sortBy'"},
      {"[1].reverse() == [1] && [1].distinct() == [1]", 34, "undeclared reference to 'reverse'"},
      {"lists.range(2) == [0, 1]", 34, "undeclared reference to 'lists'"},
      {"[1].includes(1)", 37, "undeclared reference to 'includes'"},
  };
  for (const auto& test : cases) {
    for (int minor = 26; minor <= kNewestRelease; ++minor) {
      const std::string issues = issues_in(minor, test.expression);
      if (minor >= test.since)
        EXPECT_EQ(issues, "") << "1." << minor << ": " << test.expression;
      else
        EXPECT_NE(issues.find(test.problem), std::string::npos)
            << "1." << minor << ": " << test.expression << "\n"
            << issues;
    }
  }
}

TEST(Kubernetes, some_libraries_are_in_no_release) {
  for (const std::string_view expression :
       {"cel.bind(x, 1, x) == 1", "math.greatest(1, 2) == 2", "base64.encode(b'a') == ''",
        "'ab'.reverse() == 'ba'", "regex.extract('a', 'a').hasValue()"}) {
    EXPECT_NE(issues_in(kNewestRelease, expression), "") << expression;
  }
}

TEST(Kubernetes, literals_are_checked_since_1_29) {
  for (const std::string_view expression :
       {"duration('x') == duration('1s')", "timestamp('x') == timestamp(0)", "'a'.matches('[')"}) {
    EXPECT_EQ(issues_in(28, expression), "") << expression;
    EXPECT_NE(issues_in(29, expression).find("invalid "), std::string::npos) << expression;
  }
  EXPECT_NE(issues_in(26, "[1, 'a'].size() == 2").find("expected type 'int' but found 'string'"),
            std::string::npos);
}

TEST(Kubernetes, versions_may_come_without_normalizing) {
  Environment made = kubernetes_environment(32);
  add_semver(made, 0);
  add_bindings(made);

  EXPECT_NE(made.compile("cel.bind(v, semver('1.0.0'), v.minor() == 0)").program, nullptr);
  EXPECT_EQ(made.compile("semver('1.0', true).minor() == 0").program, nullptr);
}

TEST(Kubernetes, the_last_of_equal_keys_wins) {
  for (const std::string_view expression :
       {"{'a': 1, 'a': 2} == {'a': 2}", "{'a': 1, 'a': [2][0]}.size() == 1"}) {
    const Compilation made = release(kNewestRelease).compile(expression);
    ASSERT_NE(made.program, nullptr) << format_issues(expression, made.issues);
    EXPECT_TRUE(made.program->evaluate({}).value.is_true()) << expression;
  }
}

struct Cost {
  std::string_view expression;
  std::uint64_t cost;
};

TEST(Kubernetes, calls_cost_what_they_cost_there) {
  for (const Cost& test : {
           Cost{"['0123456789', '0123456789012345678901'].isSorted()", 3},
           Cost{"['a', 'b'].isSorted()", 0},
           Cost{"'0123456789'.indexOf('9')", 1},
           Cost{"['0123456789', '0123456789'].join()", 4},
           Cost{"isURL('http://example.com/with/a/long/path')", 1},
           Cost{"cidr('10.0.0.0/8').containsIP('10.1.1.1')", 1 + 1 + 1},
           Cost{"cidr('2001:db8::/32').containsCIDR('2001:db8::/48')", 2 + 1 + 1 + 1 + 2},
           Cost{"[3, 1].sort()", 1 + 10 + 2 * 4},
           Cost{"['b', 'a'].sort()", 1 + 10 + 8},
           Cost{"['a', 'b', 'c', 'd'].distinct()", 1 + 10 + 33},
           Cost{"[[1, 2], [3]].flatten()", 1 + 10 + 2},
           Cost{"1 in []", 0},
           Cost{"1 in [1, 2]", 0},
           Cost{"[1] in [[1], [2], [3]]", 3},
           Cost{"[1, 2, 3].includes(3)", 3},
           Cost{"'0123456789'.includes('a')", 1},
           Cost{"optional.of('01234567890') == optional.of('01234567890')", 1 + 1 + 2},
       }) {
    const Compilation made = release(kNewestRelease).compile(test.expression);
    ASSERT_NE(made.program, nullptr) << format_issues(test.expression, made.issues);
    const Evaluation evaluated = made.program->evaluate({});
    EXPECT_FALSE(evaluated.value.is_error()) << evaluated.value.text();
    EXPECT_EQ(evaluated.cost, test.cost) << test.expression;
  }
}

/// The value where it is text, else whether it is true; or what is wrong.
std::string answer(int minor, std::string_view source) {
  const Compilation made = release(minor).compile(source);
  if (made.program == nullptr) return made.issues.front().message;
  if (!made.program->constant_error.empty()) return made.program->constant_error;
  const Value value = made.program->evaluate({}).value;
  if (value.is(Kind::boolean)) return value.as_boolean() ? "true" : "false";
  return std::string(value.text());
}

TEST(Kubernetes, answers_as_it_does_there) {
  const struct {
    std::string_view expression;
    std::string_view wanted;
  } cases[] = {
      // Conversions of constants happen when the program is made.
      {"int('x') == 1", "type conversion error from 'string' to 'int'"},
      {"bytes(dyn(1)) == b''", "no such overload: bytes(int)"},
      {"cel.bind(v, type(1), v == v)", "undeclared reference to 'cel' (in container '')"},
      {"[int].all(t, t == int)", "reference to undefined type: t"},
      {"'a'.find('[') == ''", "error parsing regexp: missing closing ]: `[`"},
      {"'a'.matches('\\\\C' + '')", "error parsing regexp: invalid escape sequence: `\\C`"},
      {"matches('(', 'a')", "invalid matches argument"},
      {"{}[duration('1h')] == 1", "invalid qualifier type: types.Duration"},
      // Steps into what has neither fields nor elements.
      {"dyn(1).foo == 1", "no such key: foo"},
      {"dyn([1]).foo == 1", "unsupported index type 'string' in list"},
      {"has(dyn(1).foo)", "false"},
      {"dyn(1).?foo.hasValue()", "false"},
      {"{true: dyn(0)}[?true].absent.hasValue()", "false"},
      // Refusals.
      {"dyn(1).startsWith('a')", "no such overload"},
      {"dyn(1).matches('a' + '')", "no such overload: matches"},
      {"dyn(1).lowerAscii() == ''", "no such overload: lowerAscii(int)"},
      {"dyn(['a']).sum() == 1", "no such overload: sum(list)"},
      {"dyn(1).sort() == []", "no such overload: sort"},
      {"dyn('a').sort() == []", "no such overload"},
      {"dyn(1).exists(k, v, true)", "unsupported comprehension range type: types.Int"},
      {"dyn(1).exists(k, true)", "got 'types.Int', expected iterable type"},
      {"cidr('10.0.0.0/8').containsIP('x')", "no such overload"},
      {"string(cidr('1.2.3.4'))",
       "network address parse error during conversion from string: network address parse error "
       "during conversion from string: netip.ParsePrefix(\"1.2.3.4\"): no '/'"},
      // What is refused when it is written.
      {"[1].filter(x, 1)",
       "found no matching overload for '_?_:_' applied to '(int, list(int), "
       "list(int))'"},
      {"[1].map(1, 2)", "argument is not an identifier"},
      {"[1].all(1, true)", "argument must be a simple name"},
      {"optional.of(1).optMap(1, 2)", "optMap() variable name must be a simple identifier"},
      {"1.optMap(x, x)", "found no matching overload for 'hasValue' applied to 'int.()'"},
      {"{'a': 1}.sortBy(x, x)",
       "sortBy can only be applied to a list, identifier, comprehension, "
       "call or select expression"},
      {"[1].sortBy(x, [x])",
       "found no matching overload for '@sortByAssociatedKeys' applied to "
       "'list(int).(list(list(int)))'"},
      {"[] && true", "expected type 'bool' but found 'list(_var0)'"},
      {"[1].filter(x, true).map(y, [])[0] && true", "expected type 'bool' but found 'list(_var4)'"},
      {"{}.transformMap(k, v, []) && true",
       "expected type 'bool' but found 'map(_var0, list(_var4))'"},
      {"[1].existsOne(x, true)", "undeclared reference to 'existsOne' (in container '')"},
      {"timestamp(null) == timestamp(0)", "invalid timestamp argument"},
      // Text.
      {"string(1000000.0)", "1e+06"},
      {"string(123456.5)", "123456.5"},
      {"string(timestamp('2021-07-01T12:00:00+05:30'))", "2021-07-01T12:00:00+05:30"},
      {"string(timestamp('2021-07-01T23:00:00-01:00') + duration('1h'))",
       "2021-07-02T00:00:00-01:00"},
      {"'a'.substring(-1, -2)", "invalid substring range. start: -1, end: -2"},
      {"semver(' 1.2.3', true).major() == 1", "Invalid character(s) found in major number \"0 1\""},
      {"url('//x/y').getHost()", "x"},
      {"url('http://a/%zz').getHost()",
       "URL parse error during conversion from string: parse \"http://a/%zz\": invalid URL escape "
       "\"%zz\""},
  };
  for (const auto& test : cases)
    EXPECT_EQ(answer(kNewestRelease, test.expression), test.wanted) << test.expression;
}

std::uint64_t cost_of(int minor, std::string_view source) {
  const Compilation made = release(minor).compile(source);
  return made.program == nullptr ? 0 : made.program->evaluate({}).cost;
}

TEST(Kubernetes, affixes_cost_by_what_is_looked_for_since_1_37) {
  constexpr std::string_view kLong = "'01234567890123456789'.startsWith('0' + '1')";
  EXPECT_EQ(cost_of(36, kLong), 1u + 2);
  EXPECT_EQ(cost_of(37, kLong), 1u + 1);
  EXPECT_EQ(cost_of(37, "'0'.endsWith('012345678901')"), 2u);
}

TEST(Kubernetes, new_expressions_behave_as_the_release_that_runs) {
  const Environment made = kubernetes_environment(36, 37);
  const Compilation compiled = made.compile("'abc'.indexOf('', 7) == 7");
  ASSERT_NE(compiled.program, nullptr);
  EXPECT_TRUE(compiled.program->evaluate({}).value.is_false());
  EXPECT_EQ(made.compile("[1].includes(1)").program, nullptr) << "it came with 1.37";
}

TEST(Kubernetes, what_fails_costs_what_it_costs_there) {
  for (const Cost& test : {
           // Loops go on after an error.
           Cost{"[1, 2, 3].filter(x, x / 0 == 1).size() == 1", 3 * 3 + 1 + 2},
           Cost{"[1, 2, 3].map(x, x / 0).size() == 1", 3 * 14 + 1 + 2},
           Cost{"[0, 1, 2].exists_one(x, 1 / x == 1)", 3 + 3 + 2 + 3 + 2},
           Cost{"[1, 2].transformMap(i, v, v / 0) == {}", 5 + 1 + 1},
           Cost{"{1: 2, 3: 4}.transformMap(k, v, k / 0 == 1, v) == {}", 3 + 3 + 1},
           Cost{"{1: 2, 3: 4}.transformMapEntry(k, v, {v: k / 0}) == {}", 2 * 35 + 1},
           // So does an index that fails count as a step.
           Cost{"[7][1 / 0] == 7", 1 + 1 + 1 + 1},
           Cost{"string(1 / 0) + 'abcdefghijklmnop' == ''", 1 + 1 + 2},
           // A test that is a branch is no test any more.
           Cost{"true ? has({'a': 1}.a) : true", 1},
           Cost{"has({'a': 1}.a)", 1},
       }) {
    EXPECT_EQ(cost_of(kNewestRelease, test.expression), test.cost) << test.expression;
  }
}

TEST(Kubernetes, answers_changed_in_1_37) {
  const struct {
    std::string_view expression;
    std::string_view before;
    std::string_view since;
  } cases[] = {
      {"dyn(true).orValue(false)", "true", "no such overload"},
      {"duration(size('a')) == duration('1s')",
       "type conversion error from 'int' to 'google.protobuf.Duration'",
       "found no matching overload for 'duration' applied to '(int)'"},
      {"lists.range(-1) == []", "true", "lists.range: size must be non-negative, got -1"},
      {"'abc'.indexOf('', 7) == 7", "true", "false"},
      {"'abc'.lastIndexOf('', -1) == -1", "true", "index out of range: -1"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(answer(36, test.expression), test.before) << test.expression;
    EXPECT_EQ(answer(37, test.expression), test.since) << test.expression;
  }
}

}  // namespace
}  // namespace dibs::cel
