#include "node/runtime/pick_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "node/runtime/oci_runtime.h"
#include "runtime/real_runtime.h"

namespace dibs::node {
namespace {

class PickRuntime : public testing::Test {
 protected:
  PickRuntime() {
    std::string pattern = testing::TempDir() + "oci.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~PickRuntime() override {
    std::filesystem::remove_all(oci_run_folder(root_));
    std::filesystem::remove_all(root_);
  }
  Result<PickedRuntime> pick(const std::string& kind) {
    return pick_runtime({.kind = kind,
                         .root = root_,
                         .images = testing::TempDir() + "dibs-test-images",
                         .network = root_},
                        machine_.runtime());
  }
  bool can_run_containers() {
    return missing_for_oci("runc").empty() || missing_for_oci("crun").empty();
  }

  std::string root_;
  runtime::RealRuntime machine_;
};

TEST_F(PickRuntime, takes_what_is_asked_for) {
  auto sim = pick("sim");
  ASSERT_TRUE(sim.ok());
  EXPECT_EQ(sim->name, "sim");
  EXPECT_EQ(sim->runtime->version().name, "dibs-sim");
  EXPECT_EQ(pick("docker").error().message(),
            "unknown runtime \"docker\": one of auto, oci, runc, crun, sim");
}

TEST_F(PickRuntime, says_what_it_took_and_why) {
  auto picked = pick("auto");
  ASSERT_TRUE(picked.ok()) << picked.error().message();
  if (can_run_containers()) {
    EXPECT_THAT(picked->explanation, testing::HasSubstr(picked->name));
  } else {
    EXPECT_THAT(picked->explanation,
                testing::StartsWith("sim: simulated containers, no processes: "));
    EXPECT_FALSE(pick("oci").ok());
  }
}

}  // namespace
}  // namespace dibs::node
