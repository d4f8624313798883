#include "cli/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSlices = R"(apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpu}
spec:
  nodeName: node-1
  driver: gpu.example.com
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A100}, index: {int: 0}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
    attributes: {model: {string: H100}, index: {int: 1}, link: {bool: true}}
    capacity: {memory: {value: 80Gi}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: net}
spec:
  allNodes: true
  driver: net.example.com
  pool: {name: net, generation: 1, resourceSliceCount: 1}
  devices:
  - name: nic-0
    basic: {attributes: {speed: {int: 100}}}
)";

SelectOutcome run(SelectFlags flags, const std::string& input = kSlices) {
  if (flags.files.empty() && flags.cases.empty()) flags.files = {"-"};
  std::istringstream stream(input);
  return select(flags, stream);
}

SelectFlags flags_for(std::string expression) {
  SelectFlags flags;
  flags.expression = std::move(expression);
  return flags;
}

constexpr const char* kModel =
    "device.driver == 'gpu.example.com' && "
    "device.attributes['gpu.example.com'].model == 'H100'";

class SelectFiles : public testing::Test {
 protected:
  SelectFiles()
      : folder_(std::filesystem::temp_directory_path() / cat("dibs-select-", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~SelectFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::filesystem::path folder_;
};

TEST(Select, prints_the_devices_that_match) {
  const SelectOutcome made = run(flags_for(kModel));
  EXPECT_EQ(made.status, 0);
  EXPECT_EQ(made.output,
            "NODE     POOL     DRIVER            DEVICE\n"
            "node-1   node-1   gpu.example.com   gpu-1\n");
  EXPECT_EQ(made.errors, "");
}

TEST(Select, says_when_none_does) {
  const SelectOutcome made = run(flags_for("device.driver == 'x'"));
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(made.output, "");
  EXPECT_EQ(made.errors, "No device matches, of 3.\n");
}

TEST(Select, prints_names_and_json) {
  SelectFlags flags = flags_for("true");
  flags.output = "name";
  EXPECT_EQ(run(flags).output,
            "gpu.example.com/node-1/gpu-0\ngpu.example.com/node-1/gpu-1\n"
            "net.example.com/net/nic-0\n");

  flags = flags_for("device.attributes['gpu.example.com'].link");
  flags.output = "json";
  const auto parsed = json::parse(run(flags).output);
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ((*parsed)["devices"].size(), 3u);
  EXPECT_EQ((*parsed)["devices"][0]["error"].as_string(), "no such key: link");
  EXPECT_TRUE((*parsed)["devices"][1]["match"].as_bool());
  EXPECT_EQ((*parsed)["devices"][1]["node"].as_string(), "node-1");
  EXPECT_EQ((*parsed)["devices"][2]["slice"].as_string(), "net");

  flags.explain = true;
  const auto explained = json::parse(run(flags).output);
  EXPECT_EQ((*explained)["estimatedCost"].as_string(), "4");
  EXPECT_EQ((*explained)["devices"][1]["cost"].as_int(), 4);
}

TEST(Select, explains_costs_and_results) {
  SelectFlags flags = flags_for("device.attributes['gpu.example.com'].index == 1");
  flags.explain = true;
  const SelectOutcome made = run(flags);
  EXPECT_EQ(made.output,
            "type bool, estimated cost 5 of 1000000\n"
            "NODE     POOL     DRIVER            DEVICE   COST   RESULT\n"
            "node-1   node-1   gpu.example.com   gpu-0    5      no match\n"
            "node-1   node-1   gpu.example.com   gpu-1    5      match\n"
            "<all>    net      net.example.com   nic-0    5      error: no such key: index\n");
}

TEST(Select, tells_errors_of_devices_with_what_to_do) {
  const SelectOutcome made = run(flags_for("device.attributes['gpu.example.com'].link"));
  EXPECT_EQ(made.status, 0);
  EXPECT_THAT(made.errors, HasSubstr("error: node-1/gpu-0, net/nic-0: no such key: link\n"));
  EXPECT_THAT(made.errors, HasSubstr(".?link.orValue"));
}

TEST(Select, tells_names_that_no_device_has) {
  const SelectOutcome made =
      run(flags_for("has(device.attributes['gpu.example.com'].modell) && "
                    "'gpu.exmple.com' in device.attributes"));
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.errors, HasSubstr("note: no device has the attribute \"modell\" in the domain "
                                     "\"gpu.example.com\"; did you mean \"model\"?\n"));
  EXPECT_THAT(made.errors, HasSubstr("did you mean \"gpu.example.com\"?\n"));
}

TEST(Select, shows_where_an_expression_is_wrong) {
  const SelectOutcome made = run(flags_for("true\n  && device.drver == ''"));
  EXPECT_EQ(made.status, 2);
  EXPECT_EQ(made.output, "");
  EXPECT_EQ(made.errors,
            "error: 2:12: undefined field 'drver'\n"
            "  |   && device.drver == ''\n"
            "  |            ^\n"
            "  = did you mean driver?\n");
  const SelectOutcome number = run(flags_for("1"));
  EXPECT_EQ(number.status, 2);
  EXPECT_THAT(number.errors,
              HasSubstr("error: must evaluate to bool or the unknown type, not int"));
}

TEST(Select, refuses_what_costs_too_much_unless_it_is_stored) {
  SelectFlags flags = flags_for("type(device) == type(device)");
  const SelectOutcome refused = run(flags);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("error: too complex, exceeds cost limit\n"));
  EXPECT_THAT(refused.errors, HasSubstr("the limit 1000000"));
  flags.stored = true;
  EXPECT_EQ(run(flags).status, 0);
}

TEST(Select, speaks_the_language_of_a_release_and_its_gates) {
  SelectFlags flags = flags_for("device.driver.includes('net.example.com')");
  EXPECT_EQ(run(flags).status, 2);
  flags.feature_gates = "DRAListTypeAttributes=true";
  EXPECT_EQ(run(flags).status, 0);
  flags.release = "1.36";
  EXPECT_EQ(run(flags).status, 0);
  flags.release = "1.30";
  flags.feature_gates = "";
  EXPECT_EQ(run(flags).status, 2);
  flags.release = "one";
  EXPECT_EQ(run(flags).status, 2);
}

TEST(Select, needs_an_expression_and_devices) {
  std::istringstream nothing;
  EXPECT_EQ(select(SelectFlags(), nothing).status, 2);
  EXPECT_THAT(select(flags_for("true"), nothing).errors, HasSubstr("-f or --kubeconfig"));
  SelectFlags both = flags_for("true");
  both.cases = {"x"};
  EXPECT_EQ(select(both, nothing).status, 2);
}

TEST_F(SelectFiles, read_from_files_and_folders) {
  SelectFlags flags = flags_for("true");
  flags.output = "name";
  flags.files = {write("a.yaml", kSlices)};
  EXPECT_EQ(run(flags).status, 0);

  write("pod.yml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n");
  write("notes.txt", "not YAML: {");
  write("b.json", R"({"kind": "List", "apiVersion": "v1", "items": []})");
  flags.files = {folder_.string()};
  const SelectOutcome made = run(flags);
  EXPECT_EQ(made.status, 0) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("nic-0"));

  // The option may swallow the expression behind it.
  SelectFlags swallowed;
  swallowed.files = {(folder_ / "a.yaml").string(), "device.driver != ''"};
  EXPECT_EQ(run(swallowed).status, 0);
}

TEST_F(SelectFiles, are_named_in_errors) {
  const auto error_of = [&](const std::string& path) {
    SelectFlags flags = flags_for("true");
    flags.files = {path};
    const SelectOutcome made = run(flags, "");
    EXPECT_EQ(made.status, 2) << path;
    return made.errors;
  };
  const std::string none = (folder_ / "none.yaml").string();
  EXPECT_EQ(error_of(none), cat("error: ", none, ": no such file or folder\n"));
  EXPECT_EQ(error_of("-"), "error: standard input: has no document\n");
  const std::string broken = write("broken.yaml", "a: {b\n");
  EXPECT_THAT(error_of(broken), HasSubstr(cat(broken, ": yaml: line ")));
  const std::string json = write("broken.json", "{\"a\": }");
  EXPECT_THAT(error_of(json), HasSubstr(cat(json, ": invalid character '}'")));
  const std::string second =
      write("second.yaml", cat(kSlices, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"));
  EXPECT_EQ(error_of(second),
            cat("error: ", second, ": document 3: must be a ResourceSlice, is a Pod of v1\n"));
  const std::string wrong =
      write("wrong.yaml",
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nspec: {driver: d, "
            "pool: {name: p}, devices: [{name: a, attributes: {x: {int: y}}}]}\n");
  EXPECT_EQ(error_of(wrong),
            cat("error: ", wrong, ": spec.devices[0].attributes[x].int: must be a whole number\n"));
  const std::string empty = (folder_ / "empty").string();
  std::filesystem::create_directory(empty);
  EXPECT_THAT(error_of(empty), HasSubstr("has no files"));
}

TEST_F(SelectFiles, of_cases_are_compared) {
  constexpr const char* kCase =
      R"({"device": {"driver": "d"}, "probes": [{"expression": "device.driver == 'd'", "match": )";
  SelectFlags flags;
  flags.cases = {write("good.json", cat(kCase, "true}]}"))};
  SelectOutcome made = run(flags);
  EXPECT_EQ(made.status, 0);
  EXPECT_EQ(made.output, "select: 1 same, 0 different\n");

  flags.cases = {flags.cases[0],
                 write("bad.jsonl", cat(kCase, "true}]}\n\n", kCase, "false}]}\n"))};
  made = run(flags);
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(made.output, cat(flags.cases[1], ": line 3: device.driver == 'd'\n",
                             "    match true, was false\nselect: 2 same, 1 different\n"));

  flags.cases = {write("none.json", "{}")};
  made = run(flags);
  EXPECT_EQ(made.status, 2);
  EXPECT_THAT(made.errors, HasSubstr("none.json: not a file of probes"));
}

}  // namespace
}  // namespace dibs::cli
