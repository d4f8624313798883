// The answers of Kubernetes' own allocator, recorded: its test tables and random cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "alloc/cases.h"
#include "alloc/test_support.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::alloc {
namespace {

struct Tally {
  int same = 0;
  int different = 0;
  int timeouts = 0;
  std::uint64_t most_steps = 0;
  std::string slowest;

  void add(const json::Value& source, const Limits& limits) {
    Case example(source);
    const Outcome outcome = example.run(limits);
    if (outcome.stats.steps > most_steps) {
      most_steps = outcome.stats.steps;
      slowest = example.name();
    }
    if (example.timeout()) {
      ++timeouts;
      EXPECT_NE(outcome.answer, Answer::undecided) << example.name();
      return;
    }
    const std::string difference = example.difference(outcome);
    if (difference.empty()) {
      ++same;
      return;
    }
    ++different;
    ADD_FAILURE() << example.name() << ": " << difference;
  }

  void print(std::string_view what) const {
    std::cout << what << ": " << same << " same, " << different << " different, " << timeouts
              << " that Kubernetes did not answer; most steps " << most_steps << " (" << slowest
              << ")\n";
  }
};

/// As allocate() goes about it, and with the search for hard cases alone.
class AllocatorConformance : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    folder = conformance_folder();
    if (folder.empty()) GTEST_SKIP() << "the conformance data is not here";
    if (GetParam()) limits.plain_steps = 0;
  }
  std::filesystem::path folder;
  Limits limits;
};

INSTANTIATE_TEST_SUITE_P(Search, AllocatorConformance, testing::Bool(),
                         [](const auto& info) { return info.param ? "deep" : "both"; });

TEST_P(AllocatorConformance, tables) {
  const Result<json::Value> tables = json::parse(read_file(folder / "tables.json"));
  ASSERT_TRUE(tables.ok()) << tables.error().message();

  Tally tally;
  for (const json::Value& source : tables->items()) tally.add(source, limits);

  tally.print("tables");
  EXPECT_EQ(tally.different, 0);
}

TEST_P(AllocatorConformance, random_cases) {
  Tally tally;
  const std::string text = read_file(folder / "random.jsonl");
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const Result<json::Value> source = json::parse(line);
    ASSERT_TRUE(source.ok()) << source.error().message();
    tally.add(*source, limits);
  }

  tally.print("random cases");
  EXPECT_EQ(tally.different, 0);
}

}  // namespace
}  // namespace dibs::alloc
