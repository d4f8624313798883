#include "cli/device.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "base/strings.h"
#include "cli/columns.h"
#include "cli/common_flags.h"
#include "cli/fault_board.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr Duration kLook = std::chrono::milliseconds(50);

const char* name_of(DeviceVerb verb) {
  switch (verb) {
    case DeviceVerb::fail:
      return "fail";
    case DeviceVerb::vanish:
      return "vanish";
    case DeviceVerb::slow:
      return "slow";
    case DeviceVerb::heal:
      break;
  }
  return "heal";
}

std::string slow_text(Duration prepare, Duration unprepare) {
  std::vector<std::string> out;
  if (prepare > Duration(0)) out.push_back(cat("prepare ", format_duration(prepare)));
  if (unprepare > Duration(0)) out.push_back(cat("unprepare ", format_duration(unprepare)));
  return join(out, ", ");
}

/// What is wrong with the flags together.
Result<> check(DeviceVerb verb, const DeviceFlags& flags) {
  if (flags.all && !flags.targets.empty()) {
    return Error::bad_request("--all goes without names of devices");
  }
  if (!flags.all && flags.targets.empty()) {
    return Error::bad_request(cat("names no device: NODE/DEVICE, as `dibs top devices` shows them",
                                  verb == DeviceVerb::heal ? ", or --all" : ""));
  }
  if (verb == DeviceVerb::slow && flags.prepare + flags.unprepare == Duration(0)) {
    return Error::bad_request("--prepare 0s is not slow: name how long it takes, or heal it");
  }
  if (std::max(flags.prepare, flags.unprepare) > driver::kSlowest) {
    return Error::bad_request(
        cat("--prepare, --unprepare: at most ", format_duration(driver::kSlowest)));
  }
  if (flags.reason.size() > driver::kLongestReason) {
    return Error::bad_request(cat("--reason: at most ", driver::kLongestReason, " bytes"));
  }
  return success();
}

class Change {
 public:
  Change(DeviceVerb verb, const DeviceFlags& flags, client::Client& client, Time now)
      : verb_(verb), flags_(flags), client_(client), now_(now) {}

  DeviceOutcome run(const std::function<bool()>& pause) {
    auto done = change();
    if (done) done = await(pause);
    if (!done) {
      append(made_.errors, "dibs device ", name_of(verb_), ": ", done.error().message(), "\n");
      made_.status = done.error().code() == Code::bad_request ? 2 : 1;
    }
    return std::move(made_);
  }

 private:
  Result<> change() {
    DIBS_CHECK(check(verb_, flags_));
    DIBS_TRY(const FaultBoard board, FaultBoard::read(client_, nodes_of_targets(flags_.targets)));
    DIBS_CHECK(choose(board));
    // All of them are known to be right before the first is changed.
    std::map<const BoardDriver*, std::vector<const BoardDevice*>> by_driver;
    for (const BoardDevice* device : chosen_) {
      by_driver[&board.driver_of(*device)].push_back(device);
    }
    for (const auto& [driver, devices] : by_driver) {
      DIBS_TRY(auto written, change_faults(client_, *driver, devices,
                                           [this](driver::DeviceFaults& one) { apply(one); }));
      // Nobody answers for what a driver that is gone has left.
      if (driver->takes) written_.push_back(std::move(written));
    }
    for (const BoardDevice* device : chosen_) tell(board, *device);
    return success();
  }

  Result<> choose(const FaultBoard& board) {
    if (flags_.all) {
      for (const BoardDevice& device : board.devices()) {
        if (board.driver_of(device).faults.contains(device.key())) chosen_.push_back(&device);
      }
      if (chosen_.empty()) made_.output = "no faults are set\n";
      return success();
    }
    for (const std::string& target : flags_.targets) {
      DIBS_TRY(const auto devices, board.choose(target));
      for (const BoardDevice* device : devices) {
        if (std::find(chosen_.begin(), chosen_.end(), device) != chosen_.end()) continue;
        const BoardDriver& driver = board.driver_of(*device);
        if (!driver.takes && verb_ != DeviceVerb::heal) {
          return Error::invalid(
              cat("driver ", driver.name, " of ", device->node, "/", device->name,
                  " takes no faults: `dibs driver gpu` does, and drivers with PluginOptions::faults"
                  ", where they may watch nodes; nothing was changed"));
        }
        chosen_.push_back(device);
      }
    }
    return success();
  }

  void apply(driver::DeviceFaults& one) const {
    switch (verb_) {
      case DeviceVerb::fail:
        one.fail = {flags_.reason, flags_.effect, now_};
        break;
      case DeviceVerb::vanish:
        if (!one.vanish) one.vanish = {now_};
        break;
      case DeviceVerb::slow:
        one.slow = {flags_.prepare, flags_.unprepare, now_};
        break;
      case DeviceVerb::heal:
        one = {};
        break;
    }
  }

  void tell(const FaultBoard& board, const BoardDevice& device) {
    append(made_.output, device.text());
    switch (verb_) {
      case DeviceVerb::fail:
        append(made_.output, " fails: unhealthy");
        if (flags_.effect != "None") {
          append(made_.output, ", taint ", driver::fault_taint_key(device.driver), ":",
                 flags_.effect);
        }
        break;
      case DeviceVerb::vanish:
        append(made_.output, " is gone");
        break;
      case DeviceVerb::slow:
        append(made_.output, " is slow: ", slow_text(flags_.prepare, flags_.unprepare));
        break;
      case DeviceVerb::heal:
        append(made_.output, board.driver_of(device).faults.contains(device.key())
                                 ? " is healed"
                                 : " has no fault");
        break;
    }
    append(made_.output, "\n");
  }

  Result<> await(const std::function<bool()>& pause) {
    if (flags_.wait == Duration(0)) return success();
    while (true) {
      while (!written_.empty()) {
        DIBS_TRY(const bool taken, are_taken(client_, written_.back()));
        if (!taken) break;
        written_.pop_back();
      }
      if (written_.empty()) return success();
      if (!pause()) break;
    }
    std::vector<std::string> late;
    for (const WrittenFaults& written : written_) {
      late.push_back(cat(written.driver, " on ", written.node));
    }
    return Error::timeout(cat("written, but not taken within ", format_duration(flags_.wait),
                              " by ", join(late, ", "),
                              ": does it run? It will when it does; `dibs device list` shows it"));
  }

  const DeviceVerb verb_;
  const DeviceFlags& flags_;
  client::Client& client_;
  const Time now_;
  std::vector<const BoardDevice*> chosen_;  // of the board, while change() runs
  std::vector<WrittenFaults> written_;
  DeviceOutcome made_;
};

struct FaultRow {
  const char* fault;
  std::string about;
  Time since;
  Value document;
};

std::vector<FaultRow> rows_of(const driver::DeviceFaults& faults) {
  std::vector<FaultRow> out;
  if (faults.fail) {
    const auto& fail = *faults.fail;
    out.push_back({"fail", cat(fail.effect, ": ", fail.reason), fail.since,
                   Value::object({{"effect", fail.effect}, {"reason", fail.reason}})});
  }
  if (faults.vanish) out.push_back({"vanish", "<none>", faults.vanish->since, Value::object()});
  if (faults.slow) {
    const auto& slow = *faults.slow;
    out.push_back({"slow", slow_text(slow.prepare, slow.unprepare), slow.since,
                   Value::object({{"prepare", format_duration(slow.prepare)},
                                  {"unprepare", format_duration(slow.unprepare)}})});
  }
  return out;
}

DeviceOutcome with_client(
    const char* command, const DeviceFlags& flags,
    const std::function<DeviceOutcome(client::Client& client, Time now)>& run) {
  const auto failed = [&](const Error& error) {
    return DeviceOutcome{1, "", cat("dibs device ", command, ": ", error.message(), "\n")};
  };
  runtime::RealRuntime runtime;
  const auto access = find_access(flags.kubeconfig, flags.context);
  if (!access) return failed(access.error());
  const auto transport =
      client::make_https_transport(*access, runtime::system_files(), runtime.runtime());
  if (!transport) return failed(transport.error());
  client::Client client(**transport);
  return run(client, runtime.runtime().clock.now());
}

int print(const DeviceOutcome& outcome) {
  std::cout << outcome.output << std::flush;
  std::cerr << outcome.errors;
  return outcome.status;
}

int run_change(DeviceVerb verb, const DeviceFlags& flags) {
  if (const auto wrong = check(verb, flags); !wrong) {
    return exit_status(cat("device ", name_of(verb)), wrong);
  }
  const auto until = std::chrono::steady_clock::now() + flags.wait;
  const auto pause = [&] {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kLook);
    return true;
  };
  return print(with_client(name_of(verb), flags, [&](client::Client& client, Time now) {
    return change_devices(verb, flags, client, now, pause);
  }));
}

Flag targets(DeviceFlags& flags, bool required) {
  return {"DEVICE",
          &flags.targets,
          "NODE/DEVICE as `dibs top devices` shows them, NODE/DRIVER/DEVICE or "
          "NODE/DRIVER/POOL/DEVICE; * stands for any letters",
          {.required = required}};
}

Flags common(DeviceFlags& flags) {
  return {{"--wait", &flags.wait, "How long the driver may take to take it; 0s: do not wait",
           between(0, 600)},
          kubeconfig(flags.kubeconfig),
          context(flags.context)};
}

Command command(DeviceVerb verb, const char* about, Flags (*table)(DeviceFlags&)) {
  const auto flags = std::make_shared<DeviceFlags>();
  if (verb == DeviceVerb::slow) flags->prepare = std::chrono::seconds(30);
  return {cat("device ", name_of(verb)), about, both(table(*flags), common(*flags)),
          [verb, flags] { return run_change(verb, *flags); },
          "Exit status: 0, 1 no such device or not taken, 2 wrong usage (docs/device-faults.md)."};
}

Flags fail_flags(DeviceFlags& flags) {
  return {targets(flags, true),
          {"--reason", &flags.reason, "What pods' status says of the device's health"},
          {"--effect", &flags.effect, "Of the device's taint; None: it has none, and is ill only",
           one_of({"NoExecute", "NoSchedule", "None"})}};
}

Flags vanish_flags(DeviceFlags& flags) { return {targets(flags, true)}; }

Flags slow_flags(DeviceFlags& flags) {
  const double most = static_cast<double>(
      std::chrono::duration_cast<std::chrono::seconds>(driver::kSlowest).count());
  return {
      targets(flags, true),
      {"--prepare", &flags.prepare, "How long preparing a claim with it takes", between(0, most)},
      {"--unprepare", &flags.unprepare, "How long giving it back takes", between(0, most)}};
}

Flags heal_flags(DeviceFlags& flags) {
  return {targets(flags, false), {"--all", &flags.all, "Every device that has a fault"}};
}

Flags list_flags(DeviceFlags& flags) {
  return {{"-o,--output", &flags.output, "How to print them", one_of({"table", "json", "yaml"})},
          kubeconfig(flags.kubeconfig),
          context(flags.context)};
}

}  // namespace

DeviceOutcome change_devices(DeviceVerb verb, const DeviceFlags& flags, client::Client& client,
                             Time now, const std::function<bool()>& pause) {
  return Change(verb, flags, client, now).run(pause);
}

DeviceOutcome list_faults(const DeviceFlags& flags, client::Client& client, Time now) {
  const auto board = FaultBoard::read(client, {});
  if (!board) return {1, "", cat("dibs device list: ", board.error().message(), "\n")};
  DeviceOutcome made;
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "DRIVER", "POOL", "DEVICE", "FAULT", "TAKEN", "AGE", "ABOUT"}};
  Value items = Value::array();
  for (const BoardDevice& device : board->devices()) {
    const BoardDriver& driver = board->driver_of(device);
    const auto found = driver.faults.find(device.key());
    if (found == driver.faults.end()) continue;
    for (FaultRow& row : rows_of(found->second)) {
      // A device that nobody publishes, and that has not vanished, has never been there.
      const bool there = device.published || found->second.vanish.has_value();
      const bool taken = driver.taken && there;
      rows.push_back({device.node, device.driver, device.pool, device.name, row.fault,
                      taken ? "yes" : "no", human_duration(now - row.since),
                      there ? row.about : "no such device"});
      Value item = Value::object({{"node", device.node},
                                  {"driver", device.driver},
                                  {"pool", device.pool},
                                  {"device", device.name},
                                  {"fault", row.fault},
                                  {"taken", taken},
                                  {"since", format_rfc3339(row.since)}});
      for (const auto& [name, value] : row.document.members()) item.set(name, value);
      items.push(std::move(item));
    }
  }
  for (const BoardDriver& driver : board->drivers()) {
    if (driver.trouble.empty()) continue;
    made.status = 1;
    append(made.errors, "dibs device list: faults of ", driver.name, " on ", driver.node,
           " cannot be read: ", driver.trouble, " (annotation ",
           driver::faults_annotation(driver.name), " of the node)\n");
  }
  if (flags.output == "table") {
    if (rows.size() > 1) made.output = in_columns(rows);
    if (rows.size() == 1 && made.errors.empty()) made.errors = "no faults are set\n";
    return made;
  }
  const Value document = Value::object({{"kind", "DeviceFaultList"}, {"items", std::move(items)}});
  made.output =
      flags.output == "yaml" ? json::write_yaml(document) : cat(json::write_pretty(document), "\n");
  return made;
}

void add_device_commands(CommandLine& line) {
  line.groups.push_back({"device", "Let devices of test drivers fail, vanish or be slow"});
  line.commands.push_back(
      command(DeviceVerb::fail, "Make devices unhealthy, with a taint", fail_flags));
  line.commands.push_back(
      command(DeviceVerb::vanish, "Let devices go, as a GPU that fell off the bus", vanish_flags));
  line.commands.push_back(
      command(DeviceVerb::slow, "Make preparing claims with devices slow", slow_flags));
  line.commands.push_back(command(DeviceVerb::heal, "Take the faults of devices away", heal_flags));
  const auto flags = std::make_shared<DeviceFlags>();
  line.commands.push_back(
      {"device list", "Show the faults that are set", list_flags(*flags), [flags] {
         return print(with_client("list", *flags, [&](client::Client& client, Time now) {
           return list_faults(*flags, client, now);
         }));
       }});
}

}  // namespace dibs::cli
