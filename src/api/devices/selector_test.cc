#include "api/devices/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/strings.h"

namespace dibs::api {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

SelectorEnvironment release(int minor, bool stored = false) {
  SelectorEnvironment made;
  made.release = minor;
  made.stored = stored;
  return made;
}

SelectorEnvironment lists(int minor, bool stored = false) {
  SelectorEnvironment made = release(minor, stored);
  made.list_attributes = true;
  return made;
}

std::string message(std::string_view expression, const SelectorEnvironment& environment) {
  return compile_selector(expression, environment).message;
}

TEST(Selector, knows_of_each_release_what_new_and_stored_expressions_may_use) {
  struct Case {
    const char* expression;
    int first_stored;  // release
    int first_new;
  };
  const Case cases[] = {
      {"device.driver == 'a'", 31, 31},
      {"cel.bind(a, device.attributes['d'], a.b)", 31, 31},
      {"semver('1.2.3').major() == 1", 31, 31},
      {"ip('1.2.3.4').family() == 4", 31, 31},
      {"format.dns1123Label().validate('a').hasValue()", 31, 32},
      {"[1, 2].all(i, v, v > i)", 32, 33},
      {"isSemver('v1.2', true)", 33, 34},
      {"[2, 1].sort() == [1, 2]", 34, 35},
      {"device.allowMultipleAllocations", 34, 34},
      {"[1].includes(1)", 36, 38},
  };
  for (const Case& c : cases) {
    for (int minor = 31; minor <= 37; ++minor) {
      EXPECT_EQ(compile_selector(c.expression, release(minor, true)).program != nullptr,
                minor >= c.first_stored)
          << c.expression << " stored in 1." << minor;
      EXPECT_EQ(compile_selector(c.expression, release(minor)).program != nullptr,
                minor >= c.first_new)
          << c.expression << " new in 1." << minor;
    }
  }
}

TEST(Selector, follows_the_gates_for_new_expressions) {
  SelectorEnvironment without = release(36);
  without.consumable_capacity = false;
  EXPECT_THAT(message("device.allowMultipleAllocations", without),
              HasSubstr("undefined field 'allowMultipleAllocations'"));
  EXPECT_THAT(message("device.allowMultipleAllocations", release(36)), IsEmpty());
  EXPECT_THAT(message("device.allowMultipleAllocations", release(33, true)),
              HasSubstr("undefined field"));
  without.stored = true;
  EXPECT_THAT(message("device.allowMultipleAllocations", without), IsEmpty());

  EXPECT_THAT(message("[1].includes(1)", release(36)),
              HasSubstr("undeclared reference to 'includes'"));
  EXPECT_THAT(message("[1].includes(1)", lists(36)), IsEmpty());
  EXPECT_THAT(message("[1].includes(1)", lists(35)), HasSubstr("undeclared reference"));
}

TEST(Selector, types_attributes_by_whether_they_may_be_lists) {
  constexpr const char* kLoop = "device.attributes['d'].a.exists(x, x == 1)";
  constexpr const char* kDyn = "dyn(true)";
  struct Case {
    SelectorEnvironment environment;
    const char* type;
    bool dyn;
  };
  const Case cases[] = {
      {release(35), "google.protobuf.Any", false},
      {release(35, true), "google.protobuf.Any", false},
      {release(36), "google.protobuf.Any", false},
      {release(36, true), "google.protobuf.Any", false},
      {lists(36), "dyn", true},
      {lists(36, true), "dyn", true},
      {release(37), "google.protobuf.Any", false},
      {release(37, true), "dyn", true},
      {lists(37), "dyn", true},
  };
  for (const Case& c : cases) {
    const std::string where =
        cat("1.", c.environment.release, c.environment.stored ? " stored" : "");
    EXPECT_EQ(compile_selector("device.attributes['d'].a", c.environment).type.full_name(), c.type)
        << where;
    EXPECT_EQ(compile_selector(kLoop, c.environment).program != nullptr, c.dyn) << where;
    EXPECT_EQ(compile_selector(kDyn, c.environment).program != nullptr, c.dyn) << where;
  }
}

TEST(Selector, says_what_is_wrong) {
  struct Case {
    const char* expression;
    SelectorFault fault;
    const char* message;
  };
  const Case cases[] = {
      {"device.driver == 'a'", SelectorFault::none, ""},
      {"device.drver == 'a'", SelectorFault::invalid,
       "compilation failed: ERROR: <input>:1:7: undefined field 'drver'\n"
       " | device.drver == 'a'\n | ......^"},
      {"1", SelectorFault::invalid, "must evaluate to bool or the unknown type, not int"},
      {"device.attributes['d']", SelectorFault::invalid,
       "must evaluate to bool or the unknown type, not map(string, google.protobuf.Any)"},
      {"int('x')", SelectorFault::invalid, "must evaluate to bool or the unknown type, not int"},
      {"type(device) == type(device)", SelectorFault::too_costly,
       "too complex, exceeds cost limit"},
  };
  for (const Case& c : cases) {
    const Selector selector = compile_selector(c.expression, release(36));
    EXPECT_EQ(selector.fault, c.fault) << c.expression;
    EXPECT_EQ(selector.message, c.message) << c.expression;
    EXPECT_EQ(selector.program != nullptr,
              c.fault == SelectorFault::none || c.fault == SelectorFault::too_costly)
        << c.expression;
  }
  const Selector constant = compile_selector("int('x') == 1", release(36));
  EXPECT_EQ(constant.fault, SelectorFault::internal);
  EXPECT_THAT(constant.message, StartsWith("program instantiation failed: "));
  EXPECT_EQ(constant.program, nullptr);
}

TEST(Selector, is_limited_since_1_32) {
  const std::string text = cat("'", std::string(kSelectorLengthLimit - 8, 'a'), "' != ''");
  ASSERT_EQ(text.size(), kSelectorLengthLimit);
  EXPECT_EQ(compile_selector(text, release(36)).fault, SelectorFault::none);
  EXPECT_EQ(compile_selector(text + " ", release(36)).fault, SelectorFault::too_long);
  EXPECT_EQ(compile_selector(text + " ", release(36, true)).fault, SelectorFault::too_long);
  EXPECT_EQ(compile_selector(text + " ", release(31)).fault, SelectorFault::none);

  constexpr const char* kCostly = "type(device) == type(device)";
  EXPECT_EQ(compile_selector(kCostly, release(32)).fault, SelectorFault::too_costly);
  EXPECT_EQ(compile_selector(kCostly, release(31)).fault, SelectorFault::none);
}

TEST(Selector, estimates_by_the_sizes_that_a_device_can_have) {
  struct Case {
    const char* expression;
    std::uint64_t cost;
  };
  const Case cases[] = {
      {"device.driver == 'dra.example.com'", 4},
      {"device.attributes['d'].a == device.attributes['d'].b", 15},
      {"device.attributes['d'].exists_one(x, x == 'services')", 133},
      {"device.attributes == device.attributes", 8},
      {"device.capacity['d']['m'] == device.capacity['d']['m']", 9},
      {"device.allowMultipleAllocations == true", 3},
  };
  for (const Case& c : cases)
    EXPECT_EQ(compile_selector(c.expression, release(36, true)).estimated_cost, c.cost)
        << c.expression;
  // A domain that is selected rather than indexed has no bound there.
  EXPECT_GT(compile_selector("device.attributes.d.all(x, true)", release(36)).estimated_cost,
            kSelectorCostLimit);
}

std::string validated(std::string_view expression, const SelectorEnvironment& environment) {
  FieldErrors errors;
  const Path root("spec");
  const Path path = root.child("expression");
  validate_selector(expression, environment, path, errors);
  if (errors.empty()) return "";
  EXPECT_EQ(errors.size(), 1u);
  return cat(errors.errors()[0].field, ": ", errors.errors()[0].text);
}

TEST(Selector, is_validated_in_the_words_of_the_api) {
  EXPECT_EQ(validated("true", release(36)), "");
  EXPECT_EQ(validated("1", release(36)),
            "spec.expression: Invalid value: \"1\": must evaluate to bool or the unknown type, "
            "not int");
  EXPECT_EQ(validated("x", release(36)),
            "spec.expression: Invalid value: \"x\": compilation failed: ERROR: <input>:1:1: "
            "undeclared reference to 'x' (in container '')\n | x\n | ^");
  EXPECT_EQ(validated(std::string(10'241, ' '), release(36)),
            "spec.expression: Too long: may not be more than 10240 bytes");
  EXPECT_EQ(validated("type(device) == type(device)", release(36)),
            "spec.expression: Forbidden: too complex, exceeds cost limit");
  EXPECT_THAT(validated("int('x') == 1", release(36)),
              StartsWith("spec.expression: Internal error: program instantiation failed: "));
}

TEST(Selector, is_compiled_by_any_thread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 40; ++i) {
        const std::string text = cat("device.driver == '", (i * (t + 1)) % 50, "'");
        EXPECT_NE(compile_selector(text, release(36)).program, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace dibs::api
