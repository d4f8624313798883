#include "drivers/nvidia/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace dibs::drivers::nvidia {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() { EXPECT_TRUE(files->make_dirs("/d").ok()); }

  Ledger read() {
    auto found = file.read();
    EXPECT_TRUE(found.ok()) << found.error().message();
    return found ? *found : Ledger();
  }

  std::unique_ptr<runtime::Files> files = runtime::make_memory_files();
  LedgerFile file{*files, "/d/gpus.json"};
};

TEST_F(LedgerTest, is_empty_where_there_is_none) { EXPECT_THAT(read().claims, IsEmpty()); }

TEST_F(LedgerTest, reads_what_was_written) {
  Ledger ledger;
  LedgerClaim claim;
  claim.id = {"default", "a", "u-1"};
  claim.ready = true;
  claim.gpus = {"GPU-a"};
  claim.sliced = {"GPU-a"};
  claim.exclusive = {"GPU-b"};
  LedgerInstance planned{"gpu-0-mig", "GPU-b", 19, {3, 1}, {1, 2}, {}, nvml::kNoInstance, ""};
  LedgerInstance made{"gpu-0-mig", "GPU-b", 19, {3, 1}, {}, 7, 0, "MIG-7"};
  claim.instances = {planned, made};
  claim.daemons = {{"u-1-abc", {"MIG-7"}, 50, {{"MIG-7", "10M"}}}};
  ledger.claims = {claim};
  ledger.modes = {{"GPU-b", false}};
  ledger.orphans = {made};
  ASSERT_TRUE(file.write(ledger).ok());

  Ledger found = read();
  const LedgerClaim* back = found.find("u-1");
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(found.find("u-2"), nullptr);
  EXPECT_TRUE(back->ready);
  EXPECT_EQ(back->id.name_space, "default");
  EXPECT_EQ(back->id.name, "a");
  EXPECT_THAT(back->gpus, ElementsAre("GPU-a"));
  EXPECT_THAT(back->sliced, ElementsAre("GPU-a"));
  EXPECT_THAT(back->exclusive, ElementsAre("GPU-b"));
  ASSERT_EQ(back->instances.size(), 2u);
  EXPECT_THAT(back->instances[0].others, ElementsAre(1u, 2u));
  EXPECT_FALSE(back->instances[0].gpu_instance.has_value());
  EXPECT_EQ(back->instances[1].gpu_instance, 7u);
  EXPECT_EQ(back->instances[1].compute_instance, 0u);
  EXPECT_EQ(back->instances[1].uuid, "MIG-7");
  EXPECT_EQ(back->instances[1].placement, (nvml::Placement{3, 1}));
  ASSERT_EQ(back->daemons.size(), 1u);
  EXPECT_EQ(back->daemons[0].active_thread_percentage, 50);
  EXPECT_EQ(back->daemons[0].pinned_memory_limits.at("MIG-7"), "10M");
  EXPECT_EQ(found.modes, (std::map<std::string, bool>{{"GPU-b", false}}));
  EXPECT_EQ(found.orphans.size(), 1u);
  found.erase("u-1");
  EXPECT_THAT(found.claims, IsEmpty());
}

TEST_F(LedgerTest, that_cannot_be_read_is_put_aside) {
  log::set_sink([](std::string_view) {});
  for (const char* text : {"", "{", "[]", R"({"kind": "Checkpoint"})",
                           R"({"kind": "NvidiaLedger", "apiVersion": "nvidia.dibs.dev/v9"})"}) {
    ASSERT_TRUE(files->write("/d/gpus.json", text).ok());
    EXPECT_THAT(read().claims, IsEmpty());
    EXPECT_EQ(*files->read("/d/gpus.json.unreadable"), text);
    EXPECT_FALSE(files->exists("/d/gpus.json"));
  }
  log::set_sink({});
}

}  // namespace
}  // namespace dibs::drivers::nvidia
