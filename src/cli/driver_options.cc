#include "cli/driver_options.h"

#include <algorithm>
#include <set>

#include "base/did_you_mean.h"
#include "base/flags.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "cli/driver_flags.h"
#include "cli/run_driver.h"

namespace dibs::cli {
namespace {

struct Setting {
  std::string option;
  std::vector<std::string> values;
};
using Settings = std::vector<Setting>;

/// What follows from the cluster that the driver is part of.
bool is_decided(const std::string& option) {
  static const std::set<std::string> kDecided = {"node-name",
                                                 "kube-api-qps",
                                                 "kube-api-burst",
                                                 "device-profile",
                                                 "driver-name",
                                                 "cdi-root",
                                                 "pod-uid",
                                                 "healthcheck-port",
                                                 "metrics-port",
                                                 "kubeconfig",
                                                 "context",
                                                 "named-resources",
                                                 "old-agents",
                                                 "log-level",
                                                 "ipam-socket",
                                                 "network-devices",
                                                 "leader-election",
                                                 "controller",
                                                 "leader-election-namespace",
                                                 "kubelet-registrar-directory-path",
                                                 "kubelet-plugins-directory-path"};
  return kDecided.contains(option);
}

/// "partitions" of the gpu driver for "--gpu-partitions".
std::string option_of(const Flag& flag, const std::string& driver) {
  const std::string name = name_of(flag).substr(2);
  return name.starts_with(driver + "-") ? name.substr(driver.size() + 1) : name;
}

const Flag* find_flag(const Flags& flags, const std::string& driver, const std::string& option) {
  for (const Flag& flag : flags) {
    if (name_of(flag).substr(2) == option || option_of(flag, driver) == option) return &flag;
  }
  return nullptr;
}

std::vector<std::string> known_options(const Flags& flags, const std::string& driver) {
  std::vector<std::string> out;
  for (const Flag& flag : flags) {
    if (!is_decided(name_of(flag).substr(2))) out.push_back(option_of(flag, driver));
  }
  return out;
}

Result<> apply(const Flags& flags, const std::string& driver, const Settings& settings) {
  const auto wrong = [&](const std::string& option, const std::string& what) {
    return Error::bad_request(cat("--drivers ", driver, ": option ", quoted(option), what));
  };
  for (const Setting& setting : settings) {
    const Flag* flag = find_flag(flags, driver, setting.option);
    if (flag == nullptr) {
      const auto known = known_options(flags, driver);
      return wrong(setting.option, cat(" is unknown", did_you_mean(setting.option, known),
                                       "; known are ", join(known, ", ")));
    }
    if (is_decided(name_of(*flag).substr(2))) {
      return wrong(setting.option, ": that is decided by the cluster that the driver is part of");
    }
    if (setting.values.size() > 1 && !is_list(*flag)) {
      return wrong(setting.option, ": given more than once");
    }
    if (setting.values.front().empty()) return wrong(setting.option, ": needs a value");
    // As a flag that is on by being named.
    const bool named = setting.values.front() == "\n";
    if (named && !is_switch(*flag))
      return wrong(setting.option, ": needs a value, as in NAME=VALUE");
    const auto set = named ? set_value(*flag, {"true"}) : set_value(*flag, setting.values);
    if (!set.ok()) return wrong(setting.option, cat(": ", set.error().message()));
  }
  return success();
}

bool has(const Settings& settings, std::string_view option) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& one) { return one.option == option; });
}

Result<> tune(drivers::GpuDriverOptions& options, const std::string& driver,
              const Settings& settings) {
  DriverFlags flags;
  flags.driver = options;
  DIBS_CHECK(apply(driver_flags(flags), driver, settings));
  options = flags.driver;
  return success();
}

Result<> tune(drivers::nvidia::NvidiaDriverOptions& options, const Settings& settings) {
  NvidiaDriverFlags flags;
  flags.driver = options;
  DIBS_CHECK(apply(nvidia_driver_flags(flags), "nvidia", settings));
  make_absolute(flags.driver);
  options = flags.driver;
  return success();
}

Result<> tune(NetDriverFlags& flags, const Settings& settings) {
  DIBS_CHECK(apply(net_driver_flags(flags), "net", settings));
  if (!has(settings, "subnet-match")) return success();
  DIBS_TRY(flags.ipam.selection.subnet_match, drivers::net::parse_subnet_match(flags.subnet_match));
  return success();
}

/// With `\n` for the value of an option that has none.
Settings settings_of(const std::vector<std::string>& options) {
  Settings out;
  for (const std::string& text : options) {
    const auto equals = text.find('=');
    const std::string option = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "\n" : text.substr(equals + 1);
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Setting& one) { return one.option == option; });
    if (same != out.end()) {
      same->values.push_back(value);
    } else {
      out.push_back({option, {value}});
    }
  }
  return out;
}

Error within(const Error& error, const std::string& driver) {
  return Error::bad_request(error.message()).within(cat("--drivers ", driver));
}

Result<drivers::Tuning> tuning_of(const NamedDriver& named) {
  drivers::Tuning out;
  const Settings settings = settings_of(named.options);
  if (settings.empty()) return out;
  // What is wrong is told now; then the same is done for every node.
  if (named.name == "net") {
    NetDriverFlags trial;
    DIBS_CHECK(tune(trial, settings));
    if (auto good = check_values(trial.node); !good.ok()) return within(good.error(), named.name);
    out.net_node = [settings](drivers::net::NodeHalfOptions& options) {
      NetDriverFlags flags;
      flags.node = options;
      flags.ipam = options.ipam;
      if (!tune(flags, settings).ok()) return;
      options = flags.node;
      options.ipam = flags.ipam;
    };
    out.net_control = [settings](drivers::net::ControlHalfOptions& options) {
      NetDriverFlags flags;
      flags.control = options;
      flags.ipam = options.ipam;
      if (!tune(flags, settings).ok()) return;
      options = flags.control;
      options.ipam = flags.ipam;
    };
    return out;
  }
  if (named.name == "nvidia") {
    drivers::nvidia::NvidiaDriverOptions trial;
    DIBS_CHECK(tune(trial, settings));
    if (auto good = check_values(trial); !good.ok()) return within(good.error(), named.name);
    out.nvidia = [settings](drivers::nvidia::NvidiaDriverOptions& options) {
      (void)tune(options, settings);
    };
    return out;
  }
  drivers::GpuDriverOptions trial;
  DIBS_CHECK(tune(trial, named.name, settings));
  if (auto good = check_values(trial); !good.ok()) return within(good.error(), named.name);
  out.gpu = [settings, name = named.name](drivers::GpuDriverOptions& options) {
    (void)tune(options, name, settings);
  };
  return out;
}

}  // namespace

/// Commas stand between drivers and between options: what has a value and no driver's name before
/// it belongs to the driver that came last.
Result<std::vector<NamedDriver>> name_drivers(const std::vector<std::string>& words) {
  std::vector<NamedDriver> out;
  for (const std::string& word : words) {
    const auto colon = word.find(':');
    const auto equals = word.find('=');
    std::string options;
    if (equals != std::string::npos && equals < colon) {
      if (out.empty() || out.back().options.empty()) {
        return Error::bad_request(cat("--drivers ", quoted(word),
                                      ": options stand behind a driver and a colon, as in "
                                      "gpu:partitions=4"));
      }
      options = word;
    } else {
      out.push_back({word.substr(0, colon), {}});
      if (colon == std::string::npos) continue;
      options = word.substr(colon + 1);
    }
    for (const std::string_view option : split(options, '+')) {
      if (option.empty()) {
        return Error::bad_request(cat("--drivers ", quoted(word), ": an option is empty"));
      }
      out.back().options.emplace_back(option);
    }
  }
  return out;
}

Result<std::vector<ChosenDriver>> choose_drivers(const std::vector<NamedDriver>& named) {
  std::vector<ChosenDriver> out;
  for (const NamedDriver& one : named) {
    const auto kinds = drivers::driver_kinds();
    if (find_named(kinds, one.name) == nullptr) {
      return Error::bad_request(cat("--drivers ", quoted(one.name), ": must be ",
                                    any_name_of(kinds),
                                    did_you_mean(one.name, dibs::names_of(kinds))));
    }
    if (std::any_of(out.begin(), out.end(),
                    [&](const ChosenDriver& before) { return before.name == one.name; })) {
      return Error::bad_request(cat("--drivers ", one.name, ": named twice"));
    }
    DIBS_TRY(auto tuning, tuning_of(one));
    out.push_back({one.name, std::move(tuning)});
  }
  return out;
}

Result<std::vector<ChosenDriver>> parse_drivers(const std::vector<std::string>& words) {
  DIBS_TRY(const auto named, name_drivers(words));
  return choose_drivers(named);
}

}  // namespace dibs::cli
