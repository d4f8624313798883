#include "driver/process.h"
#include "sensors.h"

namespace driver = dibs::driver;

int main(int argc, char** argv) {
  driver::PluginOptions options;
  options.driver_name = sensors::kName;
  sensors::Settings settings;
  const driver::Flags own = {
      {"--folder",
       &settings.folder,
       "Every file in it is a sensor",
       {.type = "FOLDER", .env = "SENSORS_FOLDER"}},
      {"--taint-effect",
       &settings.effect,
       "What an unhealthy sensor does to pods",
       {.one_of = {"None", "NoSchedule", "NoExecute"}}},
      {"--look-every", &settings.look_every, "How often to look into the folder", {.least = 0.1}},
  };
  const auto make =
      [&](const driver::PluginOptions& given) -> dibs::Result<std::unique_ptr<driver::Driver>> {
    const auto read = sensors::read_folder(settings.folder);
    if (!read) return dibs::Error::bad_request("--folder: " + read.error().message());
    return std::make_unique<sensors::Sensors>(given.node_name, settings);
  };
  return driver::run_main(argc, argv, options, make, own);
}
