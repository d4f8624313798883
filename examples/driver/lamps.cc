#include "lamps.h"

#include "driver/process.h"

int main(int argc, char** argv) {
  dibs::driver::PluginOptions options;
  options.driver_name = lamps::kName;
  return dibs::driver::run_main(argc, argv, options, [](const dibs::driver::PluginOptions& given) {
    return std::make_unique<lamps::Lamps>(given.node_name);
  });
}
