#pragma once
// For tests: a fake machine, laid out, with a library of its own by which the test does what other
// programs would do on it.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "drivers/nvidia/fake/testing/fake_machine.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::test {

class Machine {
 public:
  explicit Machine(const std::string& name) : fake_(name), root_(fake_.lay_out()) {
    auto library = nvml::Library::open(root_ + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
    EXPECT_TRUE(library.ok()) << library.error().message();
    library_ = std::move(library).value();
  }

  const std::string& root() const { return root_; }
  std::string uuid(std::size_t gpu = 0) { return library_->gpu_uuids()->at(gpu); }
  nvml::Library& others() { return *library_; }
  void set_faults(const std::string& yaml) { fake_.faults(yaml); }
  void reset(unsigned gpu = 0) { fake_.run("reset", cat(gpu)); }

  /// "<profile>@<start>" of each instance on the first GPU.
  std::vector<std::string> instances() {
    std::vector<std::string> out;
    const auto there = library_->mig_instances(uuid());
    EXPECT_TRUE(there.ok()) << there.error().message();
    if (!there) return out;
    for (const auto& one : *there) out.push_back(cat(one.profile, "@", one.placement.start));
    return out;
  }
  bool mig_enabled() {
    const auto info = library_->gpu(uuid());
    EXPECT_TRUE(info.ok()) << info.error().message();
    return info && info->mig_enabled;
  }

 private:
  fake::FakeMachine fake_;
  std::string root_;
  std::unique_ptr<nvml::Library> library_;
};

}  // namespace dibs::drivers::nvidia::test
