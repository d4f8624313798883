#include "runtime/process_metrics.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

namespace dibs::runtime {
namespace {

double value_of(const metrics::Registry& registry, const std::string& name) {
  const std::string text = registry.expose();
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(ProcessMetrics, are_those_of_this_process) {
  metrics::Registry registry;
  tell_of_process(registry);
  EXPECT_GE(value_of(registry, "process_cpu_seconds_total"), 0);
  EXPECT_GT(value_of(registry, "process_resident_memory_bytes"), 1e5);
  EXPECT_GT(value_of(registry, "process_virtual_memory_bytes"),
            value_of(registry, "process_resident_memory_bytes"));
  const double began = value_of(registry, "process_start_time_seconds");
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(began, now + 2);
  EXPECT_GT(began, now - 86400);
  EXPECT_GE(value_of(registry, "process_max_fds"), value_of(registry, "process_open_fds"));
}

TEST(ProcessMetrics, count_open_files) {
  metrics::Registry registry;
  tell_of_process(registry);
  const double before = value_of(registry, "process_open_fds");
  const std::ifstream open("/proc/self/status");
  EXPECT_EQ(value_of(registry, "process_open_fds"), before + 1);
}

}  // namespace
}  // namespace dibs::runtime
