#include "drivers/net/model/multus_config.h"

#include <array>

#include "base/interface_name.h"
#include "base/names.h"
#include "base/strings.h"
#include "drivers/net/model/coordinator.h"
#include "drivers/net/model/field_reader.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::int64_t kHighestVlan = 4094;
constexpr std::array<std::string_view, 4> kCniVersions = {"0.3.0", "0.3.1", "0.4.0", "1.0.0"};

/// A type, the part of the spec that is its own, and what messages call that part.
struct Type {
  std::string_view name;
  std::string_view key;
  std::string_view field;
};
constexpr std::array<Type, 8> kTypes = {{{"macvlan", "macvlan", "spec.macvlanConfig"},
                                         {"ipvlan", "ipvlan", "spec.ipvlanConfig"},
                                         {"vlan", "vlan", "spec.vlan"},
                                         {"sriov", "sriov", "spec.sriovConfig"},
                                         {"ib-sriov", "ibsriov", "spec.ibsriovConfig"},
                                         {"ipoib", "ipoib", "spec.ipoibConfig"},
                                         {"ovs", "ovs", "spec.ovsConfig"},
                                         {"custom", "customCNI", "spec.customCniTypeConfig"}}};

const Type* find_type(std::string_view name) {
  for (const auto& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

void check_interface(const FieldReader& in, std::string_view key, std::string_view name) {
  if (!is_interface_name(name)) {
    in.fail(key, cat("Invalid value: ", quoted(name), ": no name of a network interface"));
  }
}

/// "spidernet.io/sriov_a"; "" where it may be absent.
std::string resource(const FieldReader& in, std::string_view key) {
  std::string name = in.text(key);
  if (!name.empty() && !is_qualified_name(name).empty()) {
    in.fail(key, cat("Invalid value: ", quoted(name), ": no name of a resource"));
  }
  return name;
}

int vlan(const FieldReader& in, std::string_view key) {
  const std::int64_t id = in.number(key, std::numeric_limits<std::int64_t>::min());
  if (id >= 0 && id <= kHighestVlan) return static_cast<int>(id);
  in.fail(key, cat("Invalid value: ", id, ": invalid vlanId ", id,
                   ", please make sure vlanId in range [0,4094]"));
  return 0;
}

void read_pools(const FieldReader& in, MultusConfig& out) {
  const FieldReader pools = in.in("ippools");
  out.ipv4_pools = pools.texts("ipv4");
  out.ipv6_pools = pools.texts("ipv6");
  out.match_master_subnet = pools.flag("matchMasterSubnet");
  if (out.match_master_subnet && out.cni_type != "sriov") {
    in.fail("",
            cat("Invalid value: MatchMasterSubnet feature is not supported for ", out.cni_type));
  }
}

void read_bond(const FieldReader& in, MultusConfig& out) {
  if (in.has("bond")) {
    const FieldReader bond = in.in("bond");
    out.bond = Bond{bond.text("name"), bond.small_number("mode"), bond.text("options")};
    if (out.bond->mode > 6) bond.fail("mode", "must be 0 to 6");
  }
  if (out.masters.size() >= 2) {
    if (!out.bond) {
      in.fail("", "Invalid value: the bond property is nil with multiple Interfaces");
      return;
    }
    if (out.bond->name.empty()) in.fail("", "Invalid value: bond name can't be empty");
    check_interface(in, "bond.name", out.bond->name);
  } else if (out.bond) {
    in.fail("bond", "Forbidden: a bond needs two master interfaces or more");
  }
}

/// macvlan, ipvlan and vlan.
void read_parent(const FieldReader& in, MultusConfig& out) {
  out.masters = in.texts("master");
  if (out.masters.empty()) in.fail("", "Invalid value: master can't be empty");
  for (std::size_t i = 0; i < out.masters.size(); ++i) {
    check_interface(in, cat("master[", i, "]"), out.masters[i]);
    for (std::size_t j = 0; j < i; ++j) {
      if (out.masters[j] != out.masters[i]) continue;
      in.fail(cat("master[", i, "]"), cat("Duplicate value: ", quoted(out.masters[i])));
    }
  }
  out.vlan_id = vlan(in, "vlanID");
  read_bond(in, out);
  out.mtu = in.small_number("mtu");
  out.rdma_resource_name = resource(in, "rdmaResourceName");
  out.enable_rdma = in.flag("enableRdma") || !out.rdma_resource_name.empty();
  if (out.cni_type == "vlan" && !in.text("vlanMode").empty() && in.text("vlanMode") != "manual") {
    in.fail("vlanMode", cat("Unsupported value: ", quoted(in.text("vlanMode")),
                            ": supported values: \"manual\""));
  }
  if (out.cni_type != "vlan" && out.vlan_id != 0 &&
      traffic_device(out).size() > kInterfaceNameMaxLength) {
    in.fail("vlanID", cat("Invalid value: ", out.vlan_id, ": the interface would be called ",
                          traffic_device(out), ", which is longer than ", kInterfaceNameMaxLength,
                          " characters"));
  }
}

void read_sriov(const FieldReader& in, MultusConfig& out) {
  out.vlan_id = vlan(in, "vlanID");
  out.mtu = in.small_number("mtu");
  out.min_tx_rate = in.small_number("minTxRateMbps");
  out.max_tx_rate = in.small_number("maxTxRateMbps");
  if (out.min_tx_rate > out.max_tx_rate) {
    in.fail("", cat("Invalid value: ", out.min_tx_rate,
                    ": minTxRateMbps must be less than maxTxRateMbps"));
  }
  out.resource_name = resource(in, "resourceName");
  if (out.resource_name.empty()) {
    in.fail("", "Required value: no spec.sriovConfig[resourceName] specified");
  }
  out.rdma_isolation = in.flag("rdmaIsolation") || in.flag("enableRdma");
  out.enable_rdma = out.rdma_isolation;
}

void read_ib_sriov(const FieldReader& in, MultusConfig& out) {
  out.resource_name = resource(in, "resourceName");
  if (out.resource_name.empty()) {
    in.fail("", "Required value: no spec.ibsriovConfig[resourceName] specified");
  }
  out.pkey = in.text("pkey");
  if (const std::string state = in.text("linkState"); !state.empty()) out.link_state = state;
  if (out.link_state != "auto" && out.link_state != "enable" && out.link_state != "disable") {
    in.fail("linkState", cat("Unsupported value: ", quoted(out.link_state),
                             ": supported values: \"auto\", \"enable\", \"disable\""));
  }
  out.rdma_isolation = !in.has("rdmaIsolation") || in.flag("rdmaIsolation");
  out.ib_kubernetes = in.flag("enableIbKubernetes") || in.flag("ibKubernetesEnabled");
}

void read_ipoib(const FieldReader& in, MultusConfig& out) {
  out.masters = {in.text("master")};
  if (out.masters[0].empty()) {
    in.fail("", "Required value: no spec.ipoibConfig[master] specified");
  }
  check_interface(in, "master", out.masters[0]);
}

void read_ovs(const FieldReader& in, MultusConfig& out, const Value& block) {
  out.bridge = in.text("bridge");
  check_interface(in, "bridge", out.bridge);
  out.vlan_id = vlan(in, "vlan");
  out.device_id = in.text("deviceID");
  out.trunk = block["trunk"];
  for (std::size_t i = 0; i < in.list("trunk").size(); ++i) {
    const FieldReader trunk = in.item("trunk", i);
    for (const char* key : {"id", "minID", "maxID"}) {
      const std::int64_t tag = trunk.number(key, std::numeric_limits<std::int64_t>::min());
      if (tag < 0 || tag > kHighestVlan) {
        trunk.fail("", cat("Invalid value: incorrect trunk ", key, " parameter"));
      }
    }
    if (trunk.has("minID") != trunk.has("maxID")) {
      trunk.fail("", "Invalid value: minID and maxID of a trunk go together");
    }
    if (trunk.number("minID") > trunk.number("maxID")) {
      trunk.fail("", "Invalid value: minID is greater than maxID in trunk parameter");
    }
  }
}

/// What is known of a configuration that is somebody else's.
Result<> read_custom(std::string_view text, MultusConfig& out) {
  out.custom_cni = text;
  out.enable_coordinator = false;
  out.disable_ipam = true;
  if (text.empty()) return success();
  auto config = json::parse(text);
  if (!config) {
    return Error::invalid(
        "spec.customCniTypeConfig: Forbidden: customCniConfig isn't a valid JSON encoding");
  }
  const bool is_list = (*config)["plugins"].is_array();
  const Value plugins = is_list ? (*config)["plugins"] : Value::array({*config});
  const std::string_view master = plugins[0]["master"].as_string();
  if (!master.empty()) out.masters = {std::string(master)};
  for (const auto& plugin : plugins.items()) {
    const Value& ipam = plugin["ipam"];
    // Addresses of others are none of this driver's business.
    if (ipam["type"].as_string() != "spiderpool") continue;
    out.disable_ipam = false;
    for (const auto& pool : ipam["default_ipv4_ippool"].items()) {
      out.ipv4_pools.push_back(pool.str());
    }
    for (const auto& pool : ipam["default_ipv6_ippool"].items()) {
      out.ipv6_pools.push_back(pool.str());
    }
    break;
  }
  return success();
}

Result<> check_chain(const std::vector<std::string>& chain) {
  for (const auto& text : chain) {
    const auto plugin = json::parse(text);
    const std::string problem = !plugin
                                    ? cat("error parsing configuration: ", plugin.error().message())
                                : (*plugin)["type"].as_string().empty()
                                    ? std::string("error parsing configuration: missing 'type'")
                                    : std::string();
    if (!problem.empty()) {
      return Error::invalid(cat("spec.chainCNIJsonData: Forbidden: invalid ", text, ": ", problem));
    }
  }
  return success();
}

Result<> read_annotations(const Value& annotations, MultusConfig& out) {
  out.definition = out.name;
  if (const Value* name = annotations.find(kDefinitionName)) {
    const auto faults = is_dns1123_subdomain(name->as_string());
    if (!faults.empty()) {
      return Error::invalid(
          cat("metadata.annotations: Invalid value: ", quoted(name->as_string()),
              ": invalid custom net-attach-def resource name, err: ", join(faults, "; ")));
    }
    out.definition = name->str();
  }
  if (const Value* version = annotations.find(kCniVersion)) {
    bool known = false;
    for (const auto& supported : kCniVersions) known = known || supported == version->as_string();
    if (!known) {
      return Error::invalid(
          cat("metadata.annotations: Invalid value: ", quoted(version->as_string()),
              ": unsupported CNI version ", version->as_string()));
    }
    out.cni_version = version->str();
  }
  return success();
}

Result<> read_block(const Type& type, const Value& spec, MultusConfig& out) {
  const Value& block = spec[type.key];
  if (type.name != "custom" && block.is_null()) {
    return Error::invalid(cat(type.field, ": Required value: no ", type.field, " specified"));
  }
  for (const auto& other : kTypes) {
    if (other.key == type.key || spec[other.key].is_null()) continue;
    return Error::invalid(cat("spec.cniType: Forbidden: the cniType ", type.name, " only supports ",
                              type.field, ", please remove other CNI configs"));
  }
  if (type.name == "custom") return read_custom(block.as_string(), out);
  std::optional<Error> error;
  const FieldReader in(block, std::string(type.field), error);
  if (type.name == "sriov") {
    read_sriov(in, out);
  } else if (type.name == "ib-sriov") {
    read_ib_sriov(in, out);
  } else if (type.name == "ipoib") {
    read_ipoib(in, out);
  } else if (type.name == "ovs") {
    read_ovs(in, out, block);
  } else {
    read_parent(in, out);
  }
  read_pools(in, out);
  if (error) return *error;
  return success();
}

}  // namespace

Result<MultusConfig> parse_multus_config(const Value& object) {
  MultusConfig out;
  out.name = object["metadata"]["name"].str();
  out.name_space = object["metadata"]["namespace"].str();
  DIBS_CHECK(read_annotations(object["metadata"]["annotations"], out));
  const Value& spec = object["spec"];
  out.cni_type = spec["cniType"].as_string("custom");
  const Type* type = find_type(out.cni_type);
  if (type == nullptr) {
    return Error::invalid(cat("spec.cniType: Unsupported value: ", quoted(out.cni_type)));
  }
  std::optional<Error> error;
  const FieldReader in(spec, "spec", error);
  out.enable_coordinator = !in.has("enableCoordinator") || in.flag("enableCoordinator");
  out.disable_ipam = in.flag("disableIPAM");
  out.chain = in.texts("chainCNIJsonData");
  out.coordinator = spec["coordinator"];
  if (error) return *error;
  if (type->name == "custom" && !out.coordinator.is_null()) {
    return Error::invalid(
        "spec.coordinator: Forbidden: the cniType custom has no coordinator: it is part of "
        "customCNI");
  }
  if (type->name == "custom" && !out.chain.empty()) {
    return Error::invalid(
        "spec.chainCNIJsonData: Forbidden: the cniType custom has no chained plugins: they are "
        "part of customCNI");
  }
  DIBS_CHECK(read_block(*type, spec, out));
  if (!out.coordinator.is_null()) {
    DIBS_CHECK(check_coordinator(out.coordinator, "spec.coordinator"));
    const std::string_view type = out.coordinator["podCIDRType"].as_string("auto");
    if (type != "auto" && type != "none") {
      return Error::invalid(
          cat("spec.coordinator.podCIDRType: Invalid value: ", quoted(type),
              ": which network is the cluster's own is said by SpiderCoordinator"));
    }
  }
  DIBS_CHECK(check_chain(out.chain));
  return out;
}

Result<MultusConfig> config_of_definition(const Value& definition) {
  MultusConfig out;
  out.name = definition["metadata"]["name"].str();
  out.name_space = definition["metadata"]["namespace"].str();
  out.definition = out.name;
  if (auto read = read_custom(definition["spec"]["config"].as_string(), out); !read) {
    return Error::invalid("spec.config: not a valid JSON encoding");
  }
  return out;
}

std::string traffic_device(const MultusConfig& config) {
  std::string device = config.bond && config.masters.size() > 1 ? config.bond->name
                       : config.masters.empty()                 ? ""
                                                                : config.masters.front();
  if (!device.empty() && config.vlan_id != 0) append(device, ".", config.vlan_id);
  return device;
}

}  // namespace dibs::drivers::net
