// cats controller: one for the cluster. cats plugin: one on every node.
#include "cats.h"

#include <cstdio>

#include "driver/controller.h"
#include "driver/generated_parameters.h"
#include "driver/process.h"

namespace {

namespace driver = dibs::driver;

/// Flags of both halves.
struct Flags {
  std::string cats = cats::kSomeCats;
  bool structured = false;

  std::vector<driver::Flag> list() {
    return {{"cats", "CATS", "Which cats live where: NODE=COLOR/SIZE,…;NODE=…, * for all others",
             &cats},
            {"structured", "STRUCTURED",
             "The scheduler gives the cats away, as release 1.30 can (structuredParameters)",
             nullptr, nullptr, &structured}};
  }
  std::string check() const {
    const auto parsed = cats::Inventory::parse(cats);
    return parsed ? "" : parsed.error().message();
  }
};

int run_controller(int argc, char** argv) {
  Flags flags;
  driver::ControllerOptions options;
  options.driver_name = cats::kName;
  options.lease_namespace = "cats-driver";
  driver::Program program;
  program.driver_name = options.driver_name;
  program.flags = driver::controller_flags(options);
  for (const auto& flag : flags.list()) program.flags.push_back(flag);
  program.check = [&] { return flags.check(); };
  program.begin = [&](const driver::Environment& environment) -> dibs::Result<driver::Running> {
    if (flags.structured) {
      driver::GeneratedParametersOptions from;
      from.driver_name = cats::kName;
      from.kind = cats::kParameters;
      std::shared_ptr<void> kept = driver::GeneratedParameters::start(
          cats::parameters_for_scheduler, environment, std::move(from));
      return driver::Running{std::move(kept), nullptr};
    }
    auto inventory = cats::Inventory::parse(flags.cats);
    if (!inventory) return inventory.error();
    return driver::start_controller(
        std::make_unique<cats::Shelter>(std::move(inventory).value(), environment.api), environment,
        options);
  };
  return driver::run_program(argc, argv, program);
}

int run_plugin(int argc, char** argv) {
  Flags flags;
  driver::PluginOptions options;
  options.driver_name = cats::kName;
  options.publish = false;  // nobody but the controller needs to know the cats
  options.classic = true;
  driver::Program program;
  program.driver_name = options.driver_name;
  program.flags = driver::plugin_flags(options);
  for (const auto& flag : flags.list()) program.flags.push_back(flag);
  program.check = [&] {
    return options.node_name.empty() ? "--node-name is required" : flags.check();
  };
  program.begin = [&](const driver::Environment& environment) -> dibs::Result<driver::Running> {
    auto inventory = cats::Inventory::parse(flags.cats);
    if (!inventory) return inventory.error();
    options.named_resources = flags.structured;
    return driver::start_driver(
        std::make_unique<cats::Carrier>(std::move(inventory).value(), options.node_name),
        environment, options);
  };
  return driver::run_program(argc, argv, program);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string half = argc > 1 ? argv[1] : "";
  if (half == "controller") return run_controller(argc - 1, argv + 1);
  if (half == "plugin") return run_plugin(argc - 1, argv + 1);
  std::fprintf(stderr, "Usage: %s controller|plugin [flags]; --help lists them\n", argv[0]);
  return half == "--help" || half == "-h" ? 0 : 2;
}
