#include "drivers/nvidia/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "drivers/nvidia/nvidia_fakes.h"

namespace dibs::drivers::nvidia {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class HealthTest : public testing::Test {
 protected:
  /// "key=value:effect" of each.
  std::vector<std::string> marks(const Part& part) const {
    std::vector<std::string> out;
    for (const auto& mark : health.marks_of(part)) {
      out.push_back(
          cat(mark.key.substr(mark.key.find('/') + 1), "=", mark.value, ":", mark.effect));
    }
    return out;
  }
  static nvml::Event xid(std::uint64_t number) {
    nvml::Event event;
    event.gpu_uuid = "GPU-00000000";
    event.kind = nvml::EventKind::xid;
    event.data = number;
    return event;
  }

  Health health{{999}};
  const std::vector<Part> parts = parts_of(test::make_gpu(0), MigMode::dynamic, {});
  const Part& gpu = parts.front();
  const Part& instance = parts.back();
};

TEST_F(HealthTest, is_good_at_first) {
  EXPECT_THAT(marks(gpu), IsEmpty());
  const auto told = health.health_of("node-0", gpu);
  EXPECT_EQ(told.health, driver::Health::healthy);
  EXPECT_EQ(told.pool, "node-0");
  EXPECT_EQ(told.device, "gpu-0");
}

TEST_F(HealthTest, of_a_gpu_is_that_of_its_parts) {
  EXPECT_TRUE(health.saw(xid(79), "", {}));
  EXPECT_FALSE(health.saw(xid(79), "", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("xid=79:NoSchedule"));
  EXPECT_THAT(marks(instance), ElementsAre("xid=79:NoSchedule"));
  EXPECT_EQ(health.health_of("p", instance).health, driver::Health::unhealthy);
  EXPECT_EQ(health.health_of("p", instance).message, "XID 79");
}

TEST_F(HealthTest, of_an_instance_is_its_own) {
  EXPECT_TRUE(health.saw(xid(63), instance.name, {}));
  EXPECT_THAT(marks(gpu), IsEmpty());
  EXPECT_THAT(marks(instance), ElementsAre("xid=63:NoSchedule"));
  EXPECT_TRUE(health.forget_device(instance.name));
  EXPECT_FALSE(health.forget_device(instance.name));
  EXPECT_THAT(marks(instance), IsEmpty());
}

TEST_F(HealthTest, is_not_hurt_by_what_programs_do) {
  EXPECT_TRUE(health.saw(xid(13), "", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("xid=13:None"));
  EXPECT_EQ(health.health_of("p", gpu).health, driver::Health::healthy);
  EXPECT_TRUE(health.saw(xid(999), "", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("xid=999:None"));
  EXPECT_TRUE(health.saw(xid(48), "", {}));
  EXPECT_FALSE(health.saw(xid(13), "", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("xid=48:NoSchedule"));
}

TEST_F(HealthTest, returns_with_a_gpu_that_was_lost) {
  health.saw(xid(79), "", {});
  EXPECT_TRUE(health.set_lost(gpu.gpu_uuid, true, {}));
  EXPECT_FALSE(health.set_lost(gpu.gpu_uuid, true, {}));
  EXPECT_TRUE(health.is_lost(gpu.gpu_uuid));
  EXPECT_THAT(marks(gpu), ElementsAre("gpu-lost=:NoSchedule", "xid=79:NoSchedule"));
  EXPECT_TRUE(health.set_lost(gpu.gpu_uuid, false, {}));
  EXPECT_FALSE(health.set_lost(gpu.gpu_uuid, false, {}));
  EXPECT_THAT(marks(gpu), IsEmpty());
}

TEST_F(HealthTest, follows_what_is_said_of_memory) {
  nvml::RemappedRows rows;
  EXPECT_FALSE(health.set_rows(gpu.gpu_uuid, rows, {}));
  rows.pending = true;
  EXPECT_TRUE(health.set_rows(gpu.gpu_uuid, rows, {}));
  EXPECT_THAT(marks(gpu), ElementsAre("row-remap=pending:NoSchedule"));
  rows.failed = true;
  EXPECT_TRUE(health.set_rows(gpu.gpu_uuid, rows, {}));
  EXPECT_THAT(marks(gpu), ElementsAre("row-remap=failed:NoSchedule"));
  EXPECT_TRUE(health.set_rows(gpu.gpu_uuid, {}, {}));
  EXPECT_THAT(marks(gpu), IsEmpty());

  nvml::Event ecc = xid(0);
  ecc.kind = nvml::EventKind::ecc_single;
  EXPECT_FALSE(health.saw(ecc, "", {}));
  ecc.kind = nvml::EventKind::ecc_double;
  EXPECT_TRUE(health.saw(ecc, "", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("ecc=double-bit:NoSchedule"));
}

TEST_F(HealthTest, is_unknown_where_nobody_tells) {
  EXPECT_TRUE(health.set_unmonitored(gpu.gpu_uuid, "too old", {}));
  EXPECT_THAT(marks(gpu), ElementsAre("unmonitored=:None"));
  EXPECT_EQ(health.health_of("p", gpu).health, driver::Health::unknown);
  EXPECT_EQ(health.health_of("p", gpu).message, "its errors are not told: too old");
  EXPECT_TRUE(health.set_unmonitored(gpu.gpu_uuid, "", {}));
  EXPECT_THAT(marks(gpu), IsEmpty());
}

}  // namespace
}  // namespace dibs::drivers::nvidia
