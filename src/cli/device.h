#pragma once
// dibs device: gives devices faults, to see what operators and drivers of others make of them, and
// takes the faults away again (docs/device-faults.md).

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/command_line.h"
#include "client/client.h"
#include "driver/faults.h"

namespace dibs::cli {

struct DeviceFlags {
  std::vector<std::string> targets;
  std::string reason = "made to fail by dibs device";
  std::string effect = "NoExecute";
  Duration prepare{0};
  Duration unprepare{0};
  bool all = false;
  Duration wait = std::chrono::seconds(10);
  std::string output = "table";
  std::string kubeconfig;
  std::string context;
};

/// What the command prints, and its exit status.
struct DeviceOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

enum class DeviceVerb : std::uint8_t { fail, vanish, slow, heal };

/// `pause` is called between two looks whether the drivers have taken the faults, and says whether
/// to look again.
DeviceOutcome change_devices(DeviceVerb verb, const DeviceFlags& flags, client::Client& client,
                             Time now, const std::function<bool()>& pause);
DeviceOutcome list_faults(const DeviceFlags& flags, client::Client& client, Time now);

/// `dibs device fail`, `vanish`, `slow`, `heal` and `list`.
void add_device_commands(CommandLine& line);

}  // namespace dibs::cli
