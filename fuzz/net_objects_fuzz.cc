// Any SpiderMultusConfig, SpiderClaimParameter and NetworkAttachmentDefinition: what is made from
// one that was taken is JSON that CNI can read, and a DeviceClass in whose expressions names are
// strings.
#include "drivers/net/model/claim_parameter.h"
#include "drivers/net/model/multus_config.h"
#include "drivers/net/objects/device_class.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {
namespace {

using json::Value;

void check_definition(const drivers::net::MultusConfig& config, const Value& object) {
  const Value made = drivers::net::net_attach_def_of(config, object);
  require(!made["metadata"]["name"].as_string().empty() || config.name.empty(), "it has a name");
  const std::string_view text = made["spec"]["config"].as_string();
  if (text.empty()) return;
  const auto cni = json::parse(text);
  require(cni.ok(), "a configuration is JSON");
  if (config.cni_type == "custom") return;
  require(!(*cni)["plugins"].empty(), "a configuration has plugins");
  for (const auto& plugin : (*cni)["plugins"].items()) {
    require(!plugin["type"].as_string().empty(), "a plugin has a type");
  }
}

void check_class(const drivers::net::MultusConfig& config) {
  const Value made = drivers::net::device_class_of(config, {});
  for (const auto& selector : made["spec"]["selectors"].items()) {
    const std::string_view expression = selector["cel"]["expression"].as_string();
    // Texts of users stand at the end, between double quotes.
    const auto open = expression.find('"');
    if (open == std::string_view::npos) continue;
    for (std::size_t i = open + 1; i + 1 < expression.size(); ++i) {
      if (expression[i] == '\\') {
        ++i;
      } else {
        require(expression[i] != '"', "a name stays a string");
      }
    }
  }
}

}  // namespace

int fuzz_net_objects(const std::uint8_t* data, std::size_t size) {
  const auto object = json::parse({reinterpret_cast<const char*>(data), size});
  if (!object) return 0;
  if (const auto config = drivers::net::parse_multus_config(*object)) {
    (void)drivers::net::traffic_device(*config);
    check_definition(*config, *object);
    check_class(*config);
  }
  (void)drivers::net::config_of_definition(*object).ok();
  if (const auto parameter = drivers::net::parse_claim_parameter(*object)) {
    for (const auto& nic : parameter->secondary_nics) {
      require(!nic.name.empty() && !nic.name_space.empty(), "a NIC has a name");
    }
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_net_objects)
