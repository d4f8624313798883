#include "bench/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/strings.h"
#include "base/test_data.h"
#include "net/gzip.h"

namespace dibs::bench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kCase =
    R"({"name":"one","features":[],"node":{"metadata":{"name":"n"}},
        "classes":[{"metadata":{"name":"any"},"spec":{}}],
        "slices":[{"metadata":{"name":"s"},"spec":{"driver":"x","nodeName":"n",
          "pool":{"name":"a/b","generation":1,"resourceSliceCount":1},"devices":[{"name":"d"}]}}],
        "claims":[{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":
          {"deviceClassName":"any","allocationMode":"ExactCount","count":1}}]}}}],
        "allocatedDevices":["x/a/b/d"],"results":null})";

class BenchAllocator : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              cat("dibs-bench-", testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(BenchAllocator, reads_every_form) {
  const std::string line = std::string(kCase);
  std::string flat;
  for (const char c : line) flat.push_back(c == '\n' ? ' ' : c);

  const Outcome outcome = bench_allocator(
      {file("a.json", cat("[", kCase, ",", kCase, "]")), file("b.json", kCase),
       file("c.jsonl", cat(flat, "\n\n", flat, "\n")), file("d.jsonl.gz", net::gzip(flat))});

  EXPECT_EQ(outcome.status, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output,
              ContainsRegex("\nallocator: 6 same, 0 different, 0 unanswered; us per case: "
                            "median [0-9.]+, p99 [0-9.]+, max [0-9.]+\n$"));
}

TEST_F(BenchAllocator, names_what_differs) {
  std::string wrong(kCase);
  wrong.replace(wrong.find("x/a/b/d"), 7, "x/a/b/e");

  const Outcome outcome = bench_allocator({file("a.json", wrong)});

  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("one: result: [{"));
  EXPECT_THAT(outcome.output, HasSubstr("expected: does not fit"));
}

TEST_F(BenchAllocator, says_what_cannot_be_read) {
  const std::string bad = file("bad.jsonl", "{}\n{");
  EXPECT_EQ(bench_allocator({bad}).status, 2);
  EXPECT_THAT(bench_allocator({bad}).errors, HasSubstr("bad.jsonl: line 2"));
  EXPECT_EQ(bench_allocator({(folder_ / "none").string()}).status, 2);
}

TEST_F(BenchAllocator, has_the_answers_of_kubernetes) {
  const auto data = dibs::test::conformance_data();
  if (data.empty()) GTEST_SKIP() << "the conformance data is not here";

  const Outcome outcome = bench_allocator(
      {(data / "allocator/tables.json").string(), (data / "allocator/random.jsonl").string()});

  std::cout << outcome.output;
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("allocator: 1773 same, 0 different, 0 unanswered;"));
}

}  // namespace
}  // namespace dibs::bench
