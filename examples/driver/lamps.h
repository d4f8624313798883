#pragma once
// A driver for make-believe signal lamps: every node has four, and a container that gets one finds
// its number and colour in its environment. A claim may ask for a colour:
//   config: [{opaque: {driver: lamps.example.com, parameters: {colour: blue}}}]
#include "driver/driver.h"

namespace lamps {

namespace driver = dibs::driver;
using dibs::Error;
using dibs::Result;

inline constexpr const char* kName = "lamps.example.com";

class Lamps : public driver::Driver {
 public:
  explicit Lamps(std::string node) : node_(std::move(node)) {}

  Result<std::vector<driver::Pool>> devices() override {
    std::vector<driver::Device> lamps;
    for (int i = 0; i < kLamps; ++i) {
      driver::Device lamp("lamp-" + std::to_string(i));
      lamp.attribute("index", i).attribute("dimmable", i % 2 == 0).capacity("lumens", "800");
      lamps.push_back(lamp);
    }
    return std::vector<driver::Pool>{driver::make_pool(node_, lamps)};
  }

  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override {
    auto configs = driver::configs_of(claim, kName);
    if (!configs) return configs.error();
    std::vector<driver::PreparedDevice> out;
    for (const auto& lamp : claim.devices) {
      if (!is_lamp(lamp.device)) return Error::not_found("there is no lamp " + lamp.device);
      std::string colour = "white";
      if (const auto* config = driver::config_for(*configs, lamp.request)) {
        // Whoever mistypes a word shall hear of it, and not get a white lamp.
        for (const auto& [name, value] : config->parameters.members()) {
          if (name != "colour") return Error::invalid("no such parameter: " + std::string(name));
        }
        colour = config->parameters["colour"].as_string("white");
      }
      if (colour == "invisible") return Error::invalid("no lamp shines " + colour);
      out.push_back(driver::prepared(
          lamp, driver::env_edits({"LAMP=" + lamp.device, "LAMP_COLOUR=" + colour})));
    }
    return out;
  }

  Result<> unprepare(const driver::ClaimName&) override { return dibs::success(); }

 private:
  static constexpr int kLamps = 4;

  static bool is_lamp(const std::string& name) {
    for (int i = 0; i < kLamps; ++i) {
      if (name == "lamp-" + std::to_string(i)) return true;
    }
    return false;
  }

  std::string node_;
};

}  // namespace lamps
