#pragma once
// A fake machine for a test: a copy of one of drivers/nvidia/machines in a folder of its own, which
// DIBS_FAKE_NVML names as long as it lives. One at a time in a process, since that is what NVML
// is to a process.

#include <string>
#include <string_view>

namespace dibs::drivers::nvidia::fake {

class FakeMachine {
 public:
  /// "h200", "dgx-h100", "a100-40", "l4"
  explicit FakeMachine(std::string_view name);
  /// One that the test describes.
  static FakeMachine described(std::string_view yaml) { return FakeMachine(yaml, 0); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
  ~FakeMachine();

  /// libdibs-fake-nvml.so, for --nvml-library; the program dibs-fake-nvml.
  static std::string library();
  static std::string tool();

  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_ + "/machine.yaml"; }
  /// What goes wrong from now on (docs/formats/fake-nvml.md); "": nothing.
  void faults(std::string_view yaml) const;
  /// Runs the tool: `run("create", "0 1g.18gb 3")`. What it prints; fails the test where it fails.
  std::string run(std::string_view command, std::string_view arguments = "") const;
  /// Lays out a folder that looks like a machine with the driver, and says where.
  std::string lay_out() const;

 private:
  FakeMachine(std::string_view yaml, int);
  std::string folder_;
};

}  // namespace dibs::drivers::nvidia::fake
