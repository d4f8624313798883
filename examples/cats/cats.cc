// cats controller: one for the cluster. cats plugin: one on every node.
#include "cats.h"

#include <cstdio>

#include "driver/controller.h"
#include "driver/generated_parameters.h"
#include "driver/process.h"

namespace {

namespace driver = dibs::driver;

/// Flags of both halves.
struct Own {
  std::string cats = cats::kSomeCats;
  bool structured = false;

  driver::Flags flags() {
    return {{"--cats",
             &cats,
             "Which cats live where: NODE=COLOR/SIZE,…;NODE=…, * for all others",
             {.env = "CATS"}},
            {"--structured",
             &structured,
             "The scheduler gives the cats away, as release 1.30 can (structuredParameters)",
             {.env = "STRUCTURED"}}};
  }
  dibs::Result<cats::Inventory> inventory() const {
    auto parsed = cats::Inventory::parse(cats);
    if (parsed) return parsed;
    return dibs::Error::bad_request("--cats: " + parsed.error().message());
  }
  dibs::Result<> check() const {
    const auto parsed = inventory();
    return parsed ? dibs::success() : dibs::Result<>(parsed.error());
  }
};

int run_controller(int argc, char** argv) {
  Own own;
  driver::ControllerOptions options;
  options.driver_name = cats::kName;
  options.lease_namespace = "cats-driver";
  driver::Program program;
  program.driver_name = options.driver_name;
  program.flags = own.flags();
  program.check = [&] { return own.check(); };
  program.standard_flags = driver::controller_flags(options);
  program.begin = [&](const driver::Environment& environment) -> dibs::Result<driver::Running> {
    if (own.structured) {
      driver::GeneratedParametersOptions from;
      from.driver_name = cats::kName;
      from.kind = cats::kParameters;
      std::shared_ptr<void> kept = driver::GeneratedParameters::start(
          cats::parameters_for_scheduler, environment, std::move(from));
      return driver::Running{std::move(kept), nullptr};
    }
    auto inventory = own.inventory();
    if (!inventory) return inventory.error();
    return driver::start_controller(
        std::make_unique<cats::Shelter>(std::move(inventory).value(), environment.api), environment,
        options);
  };
  return driver::run_program(argc, argv, program);
}

int run_plugin(int argc, char** argv) {
  Own own;
  driver::PluginOptions options;
  options.driver_name = cats::kName;
  options.publish = false;  // nobody but the controller needs to know the cats
  options.classic = true;
  driver::Program program;
  program.driver_name = options.driver_name;
  program.flags = own.flags();
  program.check = [&] { return own.check(); };
  program.standard_flags = driver::plugin_flags(options);
  program.begin = [&](const driver::Environment& environment) -> dibs::Result<driver::Running> {
    auto inventory = own.inventory();
    if (!inventory) return inventory.error();
    options.named_resources = own.structured;
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
