#include "cel/kubernetes.h"

#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "cel/extensions.h"

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
  for (const std::string_view expression : {"{'a': 1, 'a': 2} == {'a': 2}",
                                            "{'a': 1, 'a': [2][0]}.size() == 1"}) {
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

}  // namespace
}  // namespace dibs::cel
