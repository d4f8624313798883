// Expressions that were evaluated by Kubernetes itself: types, costs, results, errors.

#include "api/devices/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/devices/test_support.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// What Kubernetes does by accident of its implementation, or where it leaves the order open.
const std::set<std::string>& accidents() {
  static const std::set<std::string> expressions = {
      // A comparison changes how a quantity is held, which later shows.
      "device.capacity[\"dra.example.com\"].mem.compareTo(quantity(\"1.5Gi\")) == -1 && "
      "device.capacity[\"dra.example.com\"].mem.isInteger()",
      // The cost depends on the order of a hash table.
      "device.attributes[\"dra.example.com\"].exists(k, k == \"int\")",
      "device.capacity.exists(d, device.capacity[d].exists(n, "
      "device.capacity[d][n].isGreaterThan(quantity(\"1Ki\"))))",
  };
  return expressions;
}

void run(const std::string& name, std::size_t count) {
  const std::filesystem::path folder = cel::conformance_folder();
  if (folder.empty()) GTEST_SKIP() << "no conformance data";
  const auto file = json::parse(cel::read_file(folder / "dra" / name));
  ASSERT_TRUE(file.ok());

  const auto report = run_probes(*file);

  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->same + report->different.size(), count);
  for (const ProbeDifference& difference : report->different) {
    if (!accidents().contains(difference.name))
      ADD_FAILURE() << difference.name << "\n    " << join(difference.what, "\n    ");
  }
}

TEST(Probes, over_a_device) { run("probes_1.36.json", 487); }
TEST(Probes, over_a_device_with_lists) { run("probes_1.36_lists.json", 66); }
TEST(Probes, of_the_table_of_upstream) { run("compile_test_1.36.json", 106); }

ProbeReport report_of(std::string_view text) {
  const auto report = run_probes(*json::parse(text));
  EXPECT_TRUE(report.ok()) << report.error().message();
  return *report;
}

TEST(Probes, tells_what_differs) {
  const ProbeReport report = report_of(R"({
    "device": {"driver": "d.example.com", "attributes": {"i": {"int": "7"}}},
    "probes": [
      {"expression": "device.attributes['d.example.com'].i == 7",
       "outputType": "bool", "estimatedCost": "5", "actualCost": 5, "match": true},
      {"expression": "device.attributes['d.example.com'].i == 8",
       "outputType": "string", "estimatedCost": "6", "actualCost": 7, "match": true},
      {"expression": "device.attributes['d.example.com'].j == 8", "matchError": "no such key: i"},
      {"expression": "nothing", "compileError": "compilation failed"},
      {"expression": "true", "compileError": "compilation failed"}]})");

  EXPECT_EQ(report.same, 1u);
  ASSERT_THAT(report.different, SizeIs(4));
  EXPECT_THAT(report.different[0].what,
              ElementsAre("type bool, was string", "estimated cost 5, was 6",
                          "match false, was true", "actual cost 5, was 7"));
  EXPECT_THAT(report.different[1].what,
              ElementsAre("error \"no such key: j\", was \"no such key: i\""));
  EXPECT_THAT(report.different[2].what, SizeIs(1));
  EXPECT_THAT(report.different[3].what,
              ElementsAre("compile error none, was \"compilation failed\""));
}

TEST(Probes, takes_the_environment_from_the_file) {
  constexpr std::string_view kForm = R"x({"listTypeAttributes": LISTS, "envType": "TYPE",
    "release": "1.36", "device": {"driver": "d.example.com", "attributes": {"i": {"int": 7}}},
    "probes": [{"expression": "device.attributes['d.example.com'].i.includes(7)", WANTED}]})x";
  const auto with = [&](std::string_view lists, std::string_view type, std::string_view wanted) {
    std::string text(kForm);
    text.replace(text.find("LISTS"), 5, lists);
    text.replace(text.find("TYPE"), 4, type);
    text.replace(text.find("WANTED"), 6, wanted);
    return report_of(text).different;
  };
  EXPECT_THAT(with("true", "NewExpressions", "\"match\": true"), IsEmpty());
  EXPECT_THAT(with("false", "StoredExpressions", "\"match\": true"), IsEmpty());
  EXPECT_THAT(with("false", "NewExpressions", "\"match\": true"), SizeIs(1));
}

TEST(Probes, takes_parts_of_messages_where_a_table_has_only_those) {
  const ProbeReport report = report_of(R"({"cases": [
    {"name": "a", "expression": "1", "expect": {"compileErrorContains": "not int"}},
    {"name": "b", "expression": "1/0 == 1", "expect": {"matchErrorContains": "by zero"}},
    {"name": "c", "expression": "true", "expect": {"matchErrorContains": "by zero"}}]})");
  EXPECT_EQ(report.same, 2u);
  ASSERT_THAT(report.different, SizeIs(1));
  EXPECT_EQ(report.different[0].name, "c: true");
}

TEST(Probes, takes_a_single_case_for_a_file) {
  for (const char* text :
       {R"({"expression": "device.driver == 'd'", "device": {"driver": "d"}, "match": true})",
        R"({"expression": "device.driver == 'd'", "driver": "d", "observed": {"match": true}})"})
    EXPECT_EQ(report_of(text).same, 1u) << text;
}

TEST(Probes, refuses_other_files) {
  for (const char* text :
       {"{}", "[]", R"({"probes": []})", R"({"device": {}, "probes": [{"expression": 1}]})",
        R"({"cases": [{}]})", R"({"release": "x", "device": {}, "probes": []})"})
    EXPECT_FALSE(run_probes(*json::parse(text)).ok()) << text;
}

}  // namespace
}  // namespace dibs::api
