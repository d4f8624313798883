// Expressions that are written to hurt: each must end soon, within its budget and a small stack.

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>

#include "base/strings.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"

namespace dibs::cel {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kSmallStack = 8 << 20;
#elif defined(__OPTIMIZE__)
constexpr std::size_t kSmallStack = 256 << 10;
#else
constexpr std::size_t kSmallStack = 1 << 20;
#endif

const Environment& environment() {
  static const auto* const made = [] {
    auto* fresh = new Environment(kubernetes_environment());
    add_bindings(*fresh);
    fresh->variable("a", {});
    return fresh;
  }();
  return *made;
}

void* run(void* task) {
  (*static_cast<const std::function<void()>*>(task))();
  return nullptr;
}

/// The stack is all there is: what recurses further than it should ends the test program.
void on_small_stack(const std::function<void()>& task) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStack), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&task)),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

struct Outcome {
  bool compiled = false;
  std::string text;  // issues, or the error of the evaluation
  std::uint64_t cost = 0;
};

Outcome outcome_of(const std::string& source) {
  Outcome made;
  const Compilation compiled =
      environment().compile(source, [](const ValuePath&) { return std::uint64_t{64}; });
  made.compiled = compiled.program != nullptr;
  if (!made.compiled) {
    made.text = format_issues(source, compiled.issues);
    return made;
  }
  Limits limits;
  limits.cost = 1'000'000;
  const Value variable = Value::list({Value::integer(1), Value::string("x")});
  const Evaluation evaluated = compiled.program->evaluate({&variable, 1}, limits);
  made.cost = evaluated.cost;
  if (evaluated.value.is_error()) made.text = evaluated.value.text();
  return made;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

struct Shape {
  std::string_view begin;
  std::string_view open;
  std::string_view middle;
  std::string_view close;
};

constexpr Shape kShapes[] = {
    {"", "(", "1", ")"},
    {"", "[", "1", "]"},
    {"", "{1:", "1", "}"},
    {"", "!(", "true", ")"},
    {"", "-(", "1", ")"},
    {"", "true?1:", "1", ""},
    {"", "(true?", "1", ":1)"},
    {"", "dyn(", "1", ")"},
    {"", "size([", "1", "])"},
    {"", "optional.of(", "1", ")"},
    {"", "1+(", "1", ")"},
    {"", "true&&(false||(", "true", "))"},
    {"", "[1].map(x,", "x", ")"},
    {"", "[1].all(x,x==x&&", "true", ")"},
    {"", "cel.bind(x,1,", "x", ")"},
    {"", "{'k':[!(", "true", ")]}"},
    {"", "optional.of(1).optMap(x,", "x", ")"},
    {"", "{?'k':optional.of(", "1", ")}"},
    {"", "a.f(", "0", ")"},
    {"", "a[", "0", "]"},
    {"", "has(a.b)||[", "1", "]==[]"},
    {"1", "+1", "", ""},
    {"1", "*1", "", ""},
    {"1", "<1", "", ""},
    {"a", ".b", "", ""},
    {"a", ".?b", "", ""},
    {"a", "[0]", "", ""},
    {"a", ".f()", "", ""},
    {"a", ".map(x,x)", "", ""},
    {"'x'", ".lowerAscii()", "", ""},
    {"[1]", ".sortBy(x,x)", "", ""},
    {"optional.of(1)", ".optMap(x,x)", "", ""},
    {"true", "&&true", "", ""},
    {"1", "-1", "", ""},
    {"", "!", "true", ""},
    {"", "-", "1", ""},
};

TEST(Hostile, the_deepest_tree_that_is_accepted_fits_a_small_stack) {
  for (const Shape& shape : kShapes) {
    const auto source = [&](std::size_t times) {
      return cat(shape.begin, repeated(shape.open, times), shape.middle,
                 repeated(shape.close, times));
    };
    std::size_t accepted = 0;
    on_small_stack([&] {
      // The most that still compiles, by halving; what does not must say so.
      std::size_t low = 0;
      std::size_t high = 4096;
      while (low + 1 < high) {
        const std::size_t times = (low + high) / 2;
        const Outcome made = outcome_of(source(times));
        (made.text.find("recursion") == std::string::npos ? low : high) = times;
      }
      accepted = low;
    });
    EXPECT_GE(accepted, 12u) << shape.open;
  }
}

TEST(Hostile, ten_kilobytes_of_anything_end_soon) {
  for (const Shape& shape : kShapes) {
    const std::size_t unit = shape.open.size() + shape.close.size();
    const std::string source = cat(shape.begin, repeated(shape.open, 10'240 / unit), shape.middle,
                                   repeated(shape.close, 10'240 / unit));
    const auto begin = std::chrono::steady_clock::now();
    on_small_stack([&] { (void)outcome_of(source); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << shape.open;
  }
}

TEST(Hostile, work_ends_at_the_budget) {
  const std::string kLimit = "operation cancelled: actual cost limit exceeded";
  const std::string ten = "[0,1,2,3,4,5,6,7,8,9]";
  std::string nested = "true";
  for (int i = 0; i < 9; ++i) nested = cat(ten, ".all(x", i, ",", nested, ")");
  const struct {
    std::string source;
    std::string wanted;
  } cases[] = {
      {nested, kLimit},
      {"lists.range(1000000000).all(x, true)", kLimit},
      {"lists.range(1000000000).map(x, x).size() == 1", kLimit},
      {"lists.range(1000000000).sum() == 1", kLimit},
      {"lists.range(1000000000).isSorted()", kLimit},
      {"lists.range(1000000000).max() == 1", kLimit},
      {"lists.range(1000000000).indexOf(-1) == 1", kLimit},
      {"lists.range(1000000000).includes(-1)", kLimit},
      {"lists.range(1000000000).sort().size() == 1", kLimit},
      {"lists.range(1000000000).reverse().size() == 1", kLimit},
      {"lists.range(1000000000).distinct().size() == 1", kLimit},
      {"lists.range(1000000000).sortBy(x, -x).size() == 1", kLimit},
      {"lists.range(1000000000).slice(0, 1000000000).size() == 1", kLimit},
      {"[lists.range(1000000000)].flatten().size() == 1", kLimit},
      {"lists.range(1000000000) == lists.range(1000000000)", kLimit},
      {"-1 in lists.range(1000000000)", kLimit},
      {"sets.contains(lists.range(1000000000), lists.range(1000000000))", kLimit},
      {"(lists.range(1000000000) + [1]).size() == 1", kLimit},
      {"'%s'.format([lists.range(1000000000)]) == ''", kLimit},
      {"lists.range(1000000000).first().hasValue()", kLimit},
      {"lists.range(100000).map(x, lists.range(100000)).size() == 1", kLimit},
  };
  for (const auto& test : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome made = outcome_of(test.source);
    EXPECT_EQ(made.text, test.wanted) << test.source;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << test.source;
  }
}

TEST(Hostile, text_does_not_grow_without_bound) {
  // Each step multiplies the length; what it costs does not stop it, its size does.
  std::string grown = "'0123456789'";
  for (int i = 0; i < 12; ++i) grown += ".replace('', '0123456789')";
  std::string doubled = "cel.bind(s0, '0123456789', ";
  std::string ends = "s30.size() == 1)";
  for (int i = 1; i <= 30; ++i) {
    append(doubled, "cel.bind(s", i, ", s", i - 1, " + s", i - 1, ", ");
    ends += ")";
  }
  std::string formatted = "cel.bind(f0, '0123456789', ";
  for (int i = 1; i <= 30; ++i)
    append(formatted, "cel.bind(f", i, ", '%s%s'.format([f", i - 1, ", f", i - 1, "]), ");
  formatted += cat("f30.size() == 1", std::string(31, ')'));
  std::string joined = "cel.bind(l0, ['0123456789', '0123456789'], ";
  for (int i = 1; i <= 30; ++i)
    append(joined, "cel.bind(l", i, ", [l", i - 1, ".join(), l", i - 1, ".join()], ");
  joined += cat("l30.size() == 1", std::string(31, ')'));
  for (const std::string& source :
       {cat(grown, ".size() == 1"), cat(doubled, ends), formatted, joined}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome made = outcome_of(source);
    EXPECT_NE(made.text, "") << source;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << source;
  }
}

TEST(Hostile, values_that_share_their_parts_are_not_walked_for_ever) {
  // Sixty levels of a list with the level below in it, twice.
  const auto shared = [](std::string_view step, std::string_view body) {
    std::string source = "cel.bind(x0, [1], ";
    for (int i = 1; i <= 60; ++i) {
      append(source, "cel.bind(x", i, ", ");
      for (const char c : step) {
        if (c == '$')
          append(source, "x", i - 1);
        else
          source += c;
      }
      source += ", ";
    }
    return cat(source, body, std::string(61, ')'));
  };
  for (const std::string& source :
       {shared("[dyn($), dyn($)]", "x60 == x60"), shared("[dyn($), dyn($)]", "x60 in [dyn(x60)]"),
        shared("[dyn($), dyn($)]", "x60.flatten(60).size() == 1"),
        shared("[dyn($), dyn($)]", "'%s'.format([x60]) == ''"),
        shared("[dyn($), dyn($)]", "x60.indexOf(x60) == 1"),
        shared("[dyn($), dyn($)]", "x60.includes(x60)"),
        shared("[dyn($), dyn($)]", "sets.contains(x60, x60)"),
        shared("[dyn($), dyn($)]", "x60.distinct().size() == 1"),
        shared("[dyn({'a': $, 'b': $})]", "x60 == x60"), shared("$ + $", "x60.size() == 1"),
        shared("$ + $", "x60.sum() == 1")}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome made = outcome_of(source);
    EXPECT_NE(made.text, "") << source;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << source;
  }
}

TEST(Hostile, numbers_have_bounds) {
  for (const char* source :
       {"1e2147483648 > 1.0", "1e400 > 1.0", "quantity('1e2147483648').isInteger()",
        "quantity('1e999999999').isGreaterThan(quantity('1e999999998'))",
        "quantity('1e999999999').add(quantity('1e-999999999')).isInteger()",
        "quantity('1E9223372036854775807').asApproximateFloat() > 1.0",
        "quantity('99999999999999999999999999999999999999999999Ei').sub(1).isInteger()",
        "duration('999999999999999999999h') > duration('1s')",
        "timestamp('99999-01-01T00:00:00Z') > timestamp(0)",
        "semver('99999999999999999999999.0.0').major() > 1", "int('99999999999999999999') > 1",
        "ip('::ffff:999.1.1.1').family() == 4", "cidr('10.0.0.0/99999999999').prefixLength() == 1",
        "timestamp(0).getHours('999999999999999999:00') == 1", "-9223372036854775808 / -1 == 1",
        "9223372036854775807 + 1 == 1"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome made = outcome_of(source);
    EXPECT_LT(made.cost, 1000u) << source;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << source;
  }
}

TEST(Hostile, patterns_do_not_blow_up) {
  for (const std::string& source :
       {std::string("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('(a+)+$')"),
        std::string("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.matches('(a|a)*(a|a)*c')"),
        std::string("'a'.matches('((a{1,100}){1,100}){1,100}')"),
        std::string("'a'.matches('a{1001}')"), cat("'a'.matches('", repeated("(", 5000), "')"),
        cat("'a'.matches('", repeated("(", 1500), "a", repeated(")", 1500), "')"),
        cat("'a'.matches('", repeated("a*", 4000), "')"),
        cat("'a'.findAll('", repeated("a?", 2000), repeated("a", 2000), "').size() == 1"),
        std::string("'a'.matches('[[:alpha:')"), std::string("a[1].matches('\\\\pN{1,1000}')")}) {
    const auto begin = std::chrono::steady_clock::now();
    on_small_stack([&] { (void)outcome_of(source); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << source;
  }
}

}  // namespace
}  // namespace dibs::cel
