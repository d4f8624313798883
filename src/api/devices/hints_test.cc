#include "api/devices/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/devices/test_support.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DeviceNames known() {
  DeviceNames names;
  names.add(device_from(R"({"attributes": {"model": {"string": "m"}, "cores": {"int": 1},
                                           "net.example.com/speed": {"int": 1}},
                            "capacity": {"memory": {"value": "1Gi"}}})"));
  return names;
}

TEST(Hints, name_what_no_device_has) {
  struct Case {
    const char* expression;
    std::vector<std::string> notes;
  };
  const std::string modle =
      "no device has the attribute \"modle\" in the domain \"gpu.example.com\"; did you mean "
      "\"model\"?";
  const std::string domain =
      "no device has attributes in the domain \"gpu.exmple.com\"; did you mean "
      "\"gpu.example.com\"?";
  const Case cases[] = {
      {"device.attributes['gpu.example.com'].model == 'm'", {}},
      {"device.attributes['gpu.example.com'].modle == 'm'", {modle}},
      {"device.attributes['gpu.example.com']['modle'] == 'm'", {modle}},
      {"has(device.attributes['gpu.example.com'].modle)", {modle}},
      {"'modle' in device.attributes['gpu.example.com']", {modle}},
      {"device.attributes['gpu.example.com'].?modle.orValue('') == 'm'", {modle}},
      {"cel.bind(g, device.attributes['gpu.example.com'], g.modle == 'm' || g.modle == 'n')",
       {modle}},
      {"device.attributes['gpu.exmple.com'].model == 'm'", {domain}},
      {"'gpu.exmple.com' in device.attributes", {domain}},
      {"device.attributes['zzz'].model == 'm'",
       {"no device has attributes in the domain \"zzz\"; domains: gpu.example.com, "
        "net.example.com"}},
      {"device.attributes['gpu.example.com'].zzzzz == 1",
       {"no device has the attribute \"zzzzz\" in the domain \"gpu.example.com\"; names there: "
        "cores, model"}},
      {"device.attributes['gpu.example.com'].memory == 1",
       {"no device has the attribute \"memory\" in the domain \"gpu.example.com\"; it is a "
        "capacity: device.capacity[\"gpu.example.com\"].memory"}},
      {"device.capacity['net.example.com'].x.sign() == 1",
       {"no device has capacities in the domain \"net.example.com\"; it is a domain of "
        "attributes"}},
      {"device.attributes.all(d, device.attributes[d].size() > 0)", {}},
      {"[1].exists(device, device.attributes['q'] == 1)", {}},
      {"1 +", {}},
  };
  for (const Case& c : cases)
    EXPECT_EQ(unknown_names(c.expression, known()), c.notes) << c.expression;
  EXPECT_THAT(unknown_names("device.attributes['q'].x", DeviceNames()), IsEmpty());
}

TEST(Hints, say_what_to_write_instead) {
  struct Case {
    const char* expression;
    const char* hint;
  };
  const Case cases[] = {
      {"device.drver == ''", "did you mean driver?"},
      {"device.model == ''", "a device has attributes, capacity, driver"},
      {"devise.driver == ''", "did you mean device?"},
      {"attributes['a'].b == 1", "device.attributes"},
      {"quantty('1') == quantity('1')", "did you mean quantity?"},
      {"device.capacity['d'].m > quantity('1')", "isGreaterThan"},
      {"device.capacity['d'].m == 1", "quantity(\"1Gi\")"},
      {"semver('1.0.0') < semver('2.0.0')", "isLessThan"},
      {"1 == 'a'", "types do not fit"},
      {"device.attributes['d'].l.exists(x, x == 1)", "DRAListTypeAttributes"},
      {"[1].includes(1)", "DRAListTypeAttributes"},
      {"device.driver", "true or false"},
      {"type(device) == type(device)", "nested loops"},
      {"device.driver == 'a", "quote"},
  };
  SelectorEnvironment environment;
  environment.release = 36;
  for (const Case& c : cases) {
    const Selector selector = compile_selector(c.expression, environment);
    const std::string message =
        selector.issues.empty() ? selector.message : selector.issues[0].message;
    EXPECT_THAT(hint_for(message, environment), HasSubstr(c.hint)) << c.expression << message;
  }
  environment.consumable_capacity = false;
  EXPECT_THAT(hint_for("undefined field 'allowMultipleAllocations'", environment),
              HasSubstr("DRAConsumableCapacity"));
  EXPECT_THAT(hint_for_error("no such key: model"), HasSubstr(".?model.orValue"));
  EXPECT_EQ(hint_for_error("division by zero"), "");
}

TEST(Hints, find_the_place_of_an_issue) {
  const std::string_view source = "true\n && \xc3\xa4.b";
  const IssuePlace place = place_of(source, {9, ""});
  EXPECT_EQ(place.line, 2u);
  EXPECT_EQ(place.column, 5u);
  EXPECT_EQ(place.text, " && \xc3\xa4.b");
  EXPECT_EQ(place_of("ab", {9, ""}).column, 3u);
  EXPECT_EQ(place_of("", {0, ""}).text, "");
}

}  // namespace
}  // namespace dibs::api
