#include "api/devices/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/devices/test_support.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using testing::HasSubstr;

constexpr std::string_view kDevice = R"({
  "name": "gpu-0",
  "attributes": {"model": {"string": "m1"}, "count": {"int": 7}, "ok": {"bool": true},
                 "firmware": {"version": "1.2.3"}, "net.example.com/speed": {"int": 100},
                 "lanes": {"ints": [1, 2]}, "names": {"strings": ["a"]},
                 "flags": {"bools": [true]}, "api": {"versions": ["1.0.0", "2.0.0"]}},
  "capacity": {"memory": {"value": "16Gi"}, "net.example.com/bandwidth": {"value": "10G"}}})";

SelectorEnvironment everything() {
  SelectorEnvironment made;
  made.release = 36;
  made.stored = true;
  made.list_attributes = true;
  return made;
}

/// "true", "false" or the error.
std::string ask(std::string_view expression, const DeviceInput& device) {
  const DeviceMatch made = match(compile_selector(expression, everything()), device);
  return made.error.empty() ? cat(made.matches) : made.error;
}

struct Question {
  const char* expression;
  const char* answer;
};

void expect_all(std::initializer_list<Question> questions, const DeviceInput& device) {
  for (const Question& question : questions)
    EXPECT_EQ(ask(question.expression, device), question.answer) << question.expression;
}

TEST(Device, has_what_its_json_says) {
  expect_all({{"device.driver == 'gpu.example.com'", "true"},
              {"device.attributes['gpu.example.com'].model == 'm1'", "true"},
              {"device.attributes['gpu.example.com'].count == 7", "true"},
              {"device.attributes['gpu.example.com'].ok", "true"},
              {"device.attributes['gpu.example.com'].firmware == semver('1.2.3')", "true"},
              {"device.attributes['net.example.com'].speed == 100", "true"},
              {"device.attributes['gpu.example.com'].lanes == [1, 2]", "true"},
              {"device.attributes['gpu.example.com'].names == ['a']", "true"},
              {"device.attributes['gpu.example.com'].flags[0]", "true"},
              {"device.attributes['gpu.example.com'].api[1] == semver('2.0.0')", "true"},
              {"device.capacity['gpu.example.com'].memory == quantity('16Gi')", "true"},
              {"device.capacity['net.example.com'].bandwidth == quantity('10G')", "true"},
              {"device.allowMultipleAllocations", "false"},
              {"dyn(device).size() == 4 && dyn(device).map(f, f)[0] != ''", "true"},
              {"dyn(device).nothing == 1", "no such key: nothing"}},
             device_from(kDevice));
  EXPECT_EQ(
      ask("device.allowMultipleAllocations", device_from(R"({"allowMultipleAllocations": true})")),
      "true");
}

TEST(Device, has_every_domain_and_only_its_own_names) {
  expect_all({{"device.attributes['nope'] == {}", "true"},
              {"device.attributes.nope.size() == 0", "true"},
              {"device.attributes['nope'].x == 1", "no such key: x"},
              {"'nope' in device.attributes", "false"},
              {"'gpu.example.com' in device.attributes", "true"},
              {"has(device.attributes.nope)", "true"},
              {"device.attributes[?'nope'].hasValue()", "true"},
              {"has(device.attributes['nope'].x)", "false"},
              {"has(device.attributes['gpu.example.com'].x)", "false"},
              {"has(device.attributes['gpu.example.com'].model)", "true"},
              {"'model' in device.attributes['gpu.example.com']", "true"},
              {"'x' in device.attributes['gpu.example.com']", "false"},
              {"device.attributes['gpu.example.com'].?x.orValue('none') == 'none'", "true"},
              {"device.attributes['gpu.example.com'].?model.orValue('none') == 'm1'", "true"},
              {"size(device.attributes) == 2", "true"},
              {"size(device.capacity) == 2", "true"},
              {"cel.bind(n, device.attributes['nope'], n == {})", "true"},
              {"dyn(device.attributes)['nope'] == {}", "true"},
              {"(true ? device.attributes : device.attributes)['nope'].size() == 0", "true"},
              {"device.attributes.map(d, d) == ['gpu.example.com', 'net.example.com']", "true"},
              {"device.attributes['gpu.example.com'].map(k, k)[0] == 'api'", "true"},
              {"device.attributes == {}", "false"},
              {"dyn(device.attributes)[1] == {}", "true"}},
             device_from(kDevice));
}

TEST(Device, finds_names_among_many) {
  std::string text = R"({"attributes": {)";
  for (int i = 0; i < 32; ++i)
    append(text, i == 0 ? "" : ", ", "\"d", i % 10, ".example.com/n", i, "\": {\"int\": ", i, "}");
  const DeviceInput device = device_from(text + "}}");
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(ask(cat("device.attributes['d", i % 10, ".example.com'].n", i, " == ", i), device),
              "true");
    EXPECT_EQ(ask(cat("has(device.attributes['d", i % 10, ".example.com'].n", i + 1, ")"), device),
              "false");
  }
  EXPECT_EQ(device.attributes().size(), 32u);
  EXPECT_EQ(device.attributes()[0].domain, "d0.example.com");
}

TEST(Device, takes_a_name_with_the_drivers_domain_before_one_without) {
  for (const char* text :
       {R"({"attributes": {"a": {"int": 1}, "gpu.example.com/a": {"int": 2}}})",
        R"({"attributes": {"gpu.example.com/a": {"int": 2}, "a": {"int": 1}}})"}) {
    const DeviceInput device = device_from(text);
    EXPECT_EQ(ask("device.attributes['gpu.example.com'].a == 2", device), "true");
    EXPECT_EQ(device.attributes().size(), 1u);
  }
  // Only the first slash counts.
  EXPECT_EQ(ask("device.attributes['a']['b/c'] == 1",
                device_from(R"({"attributes": {"a/b/c": {"int": 1}}})")),
            "true");
}

TEST(Device, that_cannot_be_read_fails_every_selector) {
  struct Case {
    const char* json;
    bool lists;
    const char* error;
  };
  const Case cases[] = {
      {R"({"attributes": {"v": {"version": "1.2"}}})", true,
       "attribute v: parse semantic version: No Major.Minor.Patch elements found"},
      {R"({"attributes": {"d.com/v": {"versions": ["1.0.0", "x"]}}})", true,
       "attribute d.com/v: parse semantic version: No Major.Minor.Patch elements found"},
      {R"({"attributes": {"x": {}}})", true, "attribute x: unsupported attribute value"},
      {R"({"attributes": {"x": {"int": null}}})", true, "attribute x: unsupported attribute value"},
      {R"({"attributes": {"x": {"ints": [1]}}})", false,
       "attribute x: unsupported attribute value"},
      {R"({"attributes": {"b": {}, "a": {}}})", true, "attribute a: unsupported attribute value"},
      {R"({"attributes": {"x": {"int": "1"}}})", true, "attribute x: int: must be a whole number"},
      {R"({"attributes": {"x": {"bool": 1}}})", true, "attribute x: bool: must be true or false"},
      {R"({"attributes": {"x": {"string": 1}}})", true, "attribute x: string: must be a string"},
      {R"({"attributes": {"x": {"ints": 1}}})", true, "attribute x: ints: must be a list"},
      {R"({"attributes": {"x": 1}})", true, "attribute x: unsupported attribute value"},
      {R"({"capacity": {"m": {"value": "1Gx"}}})", true,
       "capacity m: quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {R"({"capacity": {"m": {}}})", true, "capacity m: value: must be a quantity"},
  };
  for (const Case& c : cases) {
    const DeviceInput device = device_from(c.json, c.lists);
    EXPECT_EQ(device.error(), c.error) << c.json;
    EXPECT_EQ(ask("true", device), c.error);
    EXPECT_TRUE(device.attributes().empty());
  }
}

TEST(Device, takes_lists_where_the_release_has_them) {
  SelectorEnvironment environment;
  for (const auto& [release, gate, read] :
       {std::tuple{35, true, false}, {36, false, false}, {36, true, true}, {37, false, true}}) {
    environment.release = release;
    environment.list_attributes = gate;
    EXPECT_EQ(lists_are_read(environment), read) << release << gate;
  }
  // A list and a scalar at once: the list counts, where lists are known.
  constexpr const char* kBoth = R"({"attributes": {"x": {"int": 1, "ints": [2]}}})";
  EXPECT_EQ(ask("device.attributes['gpu.example.com'].x == [2]", device_from(kBoth)), "true");
  EXPECT_EQ(ask("device.attributes['gpu.example.com'].x == 1", device_from(kBoth, false)), "true");
}

TEST(Device, matches_by_what_is_true_or_false_only) {
  const std::string of = "CEL result of type ";
  const std::string to = " could not be converted to bool: ";
  struct Case {
    const char* expression;
    std::string answer;
  };
  const Case cases[] = {
      {"dyn(true)", "true"},
      {"dyn(optional.of(true))", "true"},
      {"dyn(1)", of + "int" + to + "unsupported type conversion from 'int' to bool"},
      {"dyn(1u)", of + "uint" + to + "unsupported type conversion from 'uint' to bool"},
      {"dyn(1.5)", of + "double" + to + "type conversion error from Double to 'bool'"},
      {"dyn('s')", of + "string" + to + "unsupported native conversion from string to 'bool'"},
      {"dyn(b'x')", of + "bytes" + to + "type conversion error from Bytes to 'bool'"},
      {"dyn(null)", of + "null_type" + to + "type conversion error from 'null_type' to 'bool'"},
      {"dyn([1])", of + "list" + to + "type conversion error from list to 'bool'"},
      {"dyn({'a': 1})", of + "map" + to + "type conversion error from map to 'bool'"},
      {"dyn(device)", of + "map" + to + "type conversion error from map to 'bool'"},
      {"dyn(duration('1s'))",
       of + "google.protobuf.Duration" + to + "type conversion error from 'Duration' to 'bool'"},
      {"dyn(timestamp('2020-01-01T00:00:00Z'))",
       of + "google.protobuf.Timestamp" + to + "type conversion error from 'Timestamp' to 'bool'"},
      {"dyn(type(1))", of + "type" + to + "type conversion not supported for 'type'"},
      {"dyn(optional.none())", of + "optional_type" + to + "optional.none() dereference"},
      {"dyn(optional.of(1))",
       of + "optional_type" + to + "unsupported type conversion from 'int' to bool"},
      {"dyn(quantity('1'))",
       of + "kubernetes.Quantity" + to + "type conversion error from 'Quantity' to 'bool'"},
      {"dyn(semver('1.0.0'))",
       of + "kubernetes.Semver" + to + "type conversion error from 'Semver' to 'bool'"},
      {"dyn(ip('1.2.3.4'))", of + "net.IP" + to + "type conversion error from 'IP' to 'bool'"},
      {"dyn(format.dns1123Label())",
       of + "kubernetes.NamedFormat" + to + "type conversion error from 'Format' to 'bool'"},
  };
  for (const Case& c : cases) EXPECT_EQ(ask(c.expression, device_from("{}")), c.answer);
}

TEST(Device, includes_looks_into_lists_and_at_scalars) {
  std::string many = "1";
  for (int i = 2; i <= 49; ++i) append(many, ", ", i);
  const DeviceInput device =
      device_from(cat(R"({"attributes": {"v": {"version": "1.2.3"}, "i": {"int": 7}, )",
                      R"("l": {"ints": [1, 2]}, "many": {"ints": [)", many, "]}}}"));
  const auto of = [](std::string_view rest) {
    return cat("device.attributes['gpu.example.com'].", rest);
  };
  EXPECT_EQ(ask(of("l.includes(2)"), device), "true");
  EXPECT_EQ(ask(of("l.includes(3)"), device), "false");
  EXPECT_EQ(ask(of("i.includes(7.0)"), device), "true");
  EXPECT_EQ(ask(of("v.includes('1.2.3')"), device), "false");
  EXPECT_EQ(ask(of("v.includes(semver('1.2.3'))"), device), "true");
  EXPECT_EQ(ask(of("many.includes(48)"), device), "true");
  EXPECT_EQ(ask(of("many.includes(49)"), device),
            "'includes' function cannot be applied to lists longer than 48 values");
}

TEST(Device, stops_at_the_cost_limit_and_when_cancelled) {
  constexpr const char* kLoops =
      "lists.range(100).all(a, lists.range(100).all(b, lists.range(100).all(c, a + b + c >= 0)))";
  const Selector selector = compile_selector(kLoops, everything());
  EXPECT_EQ(selector.fault, SelectorFault::too_costly);
  const DeviceInput device = device_from("{}");

  const DeviceMatch made = match(selector, device);
  EXPECT_EQ(made.error, "operation cancelled: actual cost limit exceeded");
  EXPECT_GT(made.cost, kSelectorCostLimit);

  const std::atomic<bool> cancelled = true;
  EXPECT_THAT(match(selector, device, &cancelled).error, HasSubstr("operation interrupted"));
}

TEST(Device, says_why_there_is_nothing_to_evaluate) {
  EXPECT_EQ(ask("1", device_from("{}")), "must evaluate to bool or the unknown type, not int");
}

TEST(Device, outlives_the_json_it_was_read_from) {
  const auto make = [] {
    return device_from(R"({"attributes": {"model": {"string": "a text that is not short"}}})");
  };
  const DeviceInput device = make();
  const DeviceInput copy = device;
  EXPECT_EQ(ask("device.attributes['gpu.example.com'].model == 'a text that is not short'", copy),
            "true");
}

}  // namespace
}  // namespace dibs::api
