#include "drivers/nvidia/fake/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "drivers/nvidia/fake/faults.h"

namespace dibs::drivers::nvidia::fake {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kModel = R"(driver: 580.95.05
cuda: "13.0"
models:
  small:
    name: Small
    brand: Nvidia
    architecture: Hopper
    computeCapability: "9.0"
    memory: 8Gi
)";

constexpr std::string_view kGpu = "- {model: small, uuid: GPU-a, pci: \"0000:19:00.0\"}\n";

std::string complaint(std::string_view text) {
  const auto machine = parse_machine(text, "m.yaml");
  return machine.ok() ? "" : machine.error().message();
}

TEST(Machine, is_read) {
  const auto machine = parse_machine(cat(kModel, "gpus:\n", kGpu), "m.yaml");

  ASSERT_TRUE(machine.ok()) << machine.error().message();
  EXPECT_EQ(machine->cuda, 13000);
  ASSERT_EQ(machine->gpus.size(), 1U);
  EXPECT_EQ(machine->model_of(0).memory, 8ULL << 30U);
  EXPECT_EQ(machine->model_of(0).compute_major, 9);
  EXPECT_EQ(machine->model_of(0).addressing_mode, -1);
}

TEST(Machine, complains_with_line_and_field) {
  EXPECT_EQ(complaint(cat(kModel, "gpus:\n- {modle: small, uuid: GPU-a, pci: \"0000:19:00.0\"}\n")),
            "m.yaml:11: gpus[0].model: is missing");
  EXPECT_EQ(complaint(cat(kModel, "    memmory: 1Gi\ngpus:\n", kGpu)),
            "m.yaml:10: models.small.memmory: unknown field; did you mean \"memory\"?");
  EXPECT_EQ(complaint(cat(kModel, "gpus:\n- {model: smal, uuid: GPU-a, pci: \"0000:19:00.0\"}\n")),
            "m.yaml:11: gpus[0].model: one of small is needed; did you mean \"small\"?");
}

TEST(Machine, complains_about_what_is_no_yaml) {
  EXPECT_THAT(complaint("a: [1"), StartsWith("m.yaml: "));
  EXPECT_THAT(complaint("- 1"), HasSubstr("a map of fields is needed"));
}

TEST(Machine, complains_about_a_version_that_is_a_number) {
  std::string text = cat(kModel, "gpus:\n", kGpu);
  text.replace(text.find("\"13.0\""), 6, "13.0");
  EXPECT_THAT(complaint(text), HasSubstr("m.yaml:2: cuda: a text is needed (in quotes"));
}

TEST(Machine, complains_about_gpus_that_are_alike) {
  EXPECT_THAT(complaint(cat(kModel, "gpus:\n", kGpu, kGpu)),
              StartsWith("m.yaml:12: gpus[1].uuid: another GPU has it"));
}

TEST(Machine, complains_about_an_address_that_is_none) {
  EXPECT_THAT(complaint(cat(kModel, "gpus:\n- {model: small, uuid: GPU-a, pci: \"19:00.0\"}\n")),
              HasSubstr("gpus[0].pci: an address as 0000:19:00.0 is needed"));
}

TEST(Machine, complains_about_a_placement_past_the_end) {
  constexpr std::string_view kMig = R"(    mig:
      slices: 7
      memorySlices: 8
      profiles:
      - {name: 1g, id: 19, index: 0, slices: 1, instances: 7, multiprocessors: 16, memory: 1Gi, memorySlices: 2, starts: [0, 7]}
)";
  EXPECT_EQ(complaint(cat(kModel, kMig, "gpus:\n", kGpu)),
            "m.yaml:14: models.small.mig.profiles[0].starts: 7 and 2 memory slices are more than "
            "the GPU's 8");
}

Machine two_gpus() {
  auto machine = parse_machine(
      cat(kModel, "gpus:\n", kGpu, "- {model: small, uuid: GPU-b, pci: \"0000:1a:00.0\"}\n"), "m");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  return std::move(*machine);
}

std::string fault_complaint(std::string_view text) {
  const auto faults = parse_faults(two_gpus(), text, "m.faults");
  return faults.ok() ? "" : faults.error().message();
}

TEST(Faults, name_gpus_by_index_and_by_uuid) {
  const auto faults =
      parse_faults(two_gpus(), "gpus:\n- {gpu: GPU-b, lost: true}\n- {gpu: 0, busy: true}\n", "");

  ASSERT_TRUE(faults.ok()) << faults.error().message();
  EXPECT_TRUE(faults->gpus[1].lost);
  EXPECT_TRUE(faults->gpus[0].busy);
}

TEST(Faults, are_none_in_an_empty_file) {
  const auto faults = parse_faults(two_gpus(), "", "");
  ASSERT_TRUE(faults.ok()) << faults.error().message();
  EXPECT_EQ(faults->gpus.size(), 2U);
}

TEST(Faults, complain_about_what_is_not_there) {
  EXPECT_THAT(fault_complaint("gpus: [{gpu: 7, lost: true}]"),
              HasSubstr("gpus[0].gpu: the machine has no GPU \"7\""));
  EXPECT_THAT(fault_complaint("calls: [{call: nvmlInit_v2, code: broken}]"),
              HasSubstr("calls[0].code: a code of NVML is needed"));
  EXPECT_THAT(fault_complaint("calls: [{call: init}]"), HasSubstr("the name of a function"));
  EXPECT_THAT(fault_complaint("calls: [{call: nvmlInit_v2, takes: long}]"),
              HasSubstr("calls[0].takes: a duration is needed"));
}

TEST(Faults, take_codes_in_every_spelling) {
  EXPECT_EQ(parse_code("in_use"), 19);
  EXPECT_EQ(parse_code("NVML_ERROR_IN_USE"), 19);
  EXPECT_EQ(parse_code("19"), 19);
  EXPECT_EQ(parse_code("unknown"), 999);
  EXPECT_EQ(parse_code("success"), 0);
  EXPECT_EQ(parse_code("31"), std::nullopt);
}

}  // namespace
}  // namespace dibs::drivers::nvidia::fake
