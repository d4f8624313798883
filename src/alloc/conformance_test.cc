// The answers of Kubernetes' own allocator, recorded: its test tables and random cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <set>

#include "alloc/cases.h"
#include "alloc/failure.h"
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

/// Of the requests that Kubernetes did not answer in time: why the answer is no, by the objects
/// alone. A demand has no answer when a part of it has none, whatever else is asked for.
std::string proof_of_no(const json::Value& source) {
  std::set<std::string> used;
  for (const json::Value& id : source["allocatedDevices"].items()) used.insert(id.str());
  const auto each_device = [&](std::string_view driver, const auto& visit) {
    for (const json::Value& slice : source["slices"].items()) {
      if (slice["spec"]["driver"].as_string() != driver) continue;
      for (const json::Value& device : slice["spec"]["devices"].items()) visit(slice, device);
    }
  };
  for (const json::Value& claim : source["claims"].items()) {
    for (const json::Value& request : claim["spec"]["devices"]["requests"].items()) {
      const json::Value& exact = request["exactly"];
      if (!exact.is_object()) continue;
      // Classes of these cases are named after the one driver that they select.
      const std::string driver = exact["deviceClassName"].str().substr(std::strlen("class-"));
      const std::string name =
          cat(claim["metadata"]["name"].as_string(), "/", request["name"].as_string());
      std::string found;
      if (exact["allocationMode"].as_string() == "All" && !exact["adminAccess"].as_bool()) {
        each_device(driver, [&](const json::Value& slice, const json::Value& device) {
          const std::string id = cat(driver, "/", slice["spec"]["pool"]["name"].as_string(), "/",
                                     device["name"].as_string());
          const bool wanted = exact["selectors"][0]["cel"]["expression"].as_string().ends_with(
              cat(".model == \"", device["attributes"]["model"]["string"].as_string(), "\""));
          if (wanted && used.contains(id)) found = cat(name, " needs ", id, ", which is in use");
        });
      }
      for (const json::Value& constraint : claim["spec"]["devices"]["constraints"].items()) {
        const std::string attribute = constraint["matchAttribute"].str();
        if (!constraint["requests"].empty() || attribute.empty() || driver.empty()) continue;
        bool somewhere = false;
        each_device(driver, [&](const json::Value&, const json::Value& device) {
          for (const auto& [key, value] : device["attributes"].members()) {
            const bool qualified = key.find('/') != std::string_view::npos;
            somewhere =
                somewhere || attribute == (qualified ? std::string(key) : cat(driver, "/", key));
          }
        });
        if (!somewhere) found = cat(name, " needs ", attribute, ", which no device has");
      }
      if (!found.empty()) return found;
    }
  }
  return {};
}

TEST_P(AllocatorConformance, what_kubernetes_did_not_answer_has_no_solution) {
  int checked = 0;
  const std::string text = read_file(folder / "random.jsonl");
  for (const std::string_view line : split(text, '\n')) {
    if (line.find("\"timeout\"") == std::string_view::npos) continue;
    const Result<json::Value> source = json::parse(line);
    ASSERT_TRUE(source.ok());
    if (!(*source)["timeout"].as_bool()) continue;
    ++checked;
    Case example(*source);
    SCOPED_TRACE(example.name());

    const Outcome outcome = example.run(limits);

    const std::string proof = proof_of_no(*source);
    EXPECT_EQ(outcome.answer, Answer::unavailable) << outcome.error;
    EXPECT_NE(proof, "");
    // The smallest conflict names the same request.
    const NodeFailure failure = explain(example.inventory(), example.node(), example.demand());
    ASSERT_FALSE(failure.conflict.empty());
    const ConflictItem& item = failure.conflict.front();
    const Claim& claim = *example.demand().claims[item.claim].claim;
    EXPECT_TRUE(proof.starts_with(cat(claim.name, "/", claim.requests[item.request].name, " ")))
        << proof;
    std::cout << example.name() << ": no, since " << proof << "\n";
  }
  EXPECT_EQ(checked, 2);
}

}  // namespace
}  // namespace dibs::alloc
