// The plugin `ifacer`: what pods' interfaces stand on, in the host's namespace.
//
// Devices of the host are shared by pods, so a DEL takes nothing away; an ADD finds what an earlier
// one made. One that is there and is something else is an error, never changed.
#include "drivers/net/cni/ifacer.h"
#include "base/interface_name.h"
#include "base/strings.h"
#include "drivers/net/cni/netlink.h"
#include "drivers/net/cni/plugin_call.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

Result<> bring_up(Netlink& kernel, const std::string& name) {
  DIBS_TRY(const KernelLink link, kernel.link(name));
  if (link.up) return success();
  LinkChange change;
  change.up = true;
  return kernel.change_link(link.index, change);
}

Result<> check_member(Netlink& kernel, const std::string& name, int bond) {
  DIBS_TRY(const KernelLink member, kernel.link(name));
  if (member.master == 0 || member.master == bond) return success();
  return Error::invalid(cat("interface ", quoted(name), " is part of another device"));
}

Result<> make_bond(Netlink& kernel, const IfacerConfig& config) {
  const std::string& name = config.bond_name;
  DIBS_TRY(auto bond, kernel.find_link(name));
  if (bond && bond->kind != "bond") {
    return Error::invalid(cat("interface ", quoted(name), " is there and is no bond"));
  }
  if (bond && bond->bond_mode >= 0 && bond->bond_mode != config.bond.mode) {
    return Error::invalid(cat("bond ", quoted(name), " is there with mode ", bond->bond_mode,
                              ", not ", config.bond.mode));
  }
  for (const auto& member : config.interfaces) {
    DIBS_CHECK(check_member(kernel, member, bond ? bond->index : 0));
  }
  if (!bond) DIBS_CHECK(kernel.add_bond(name, config.bond));
  DIBS_TRY(const KernelLink made, kernel.link(name));
  for (const auto& interface : config.interfaces) {
    DIBS_TRY(const KernelLink member, kernel.link(interface));
    if (member.master == made.index) continue;
    // The kernel takes only those that are down.
    LinkChange down;
    down.up = false;
    DIBS_CHECK(kernel.change_link(member.index, down));
    LinkChange join;
    join.master = made.index;
    DIBS_CHECK(kernel.change_link(member.index, join));
  }
  for (const auto& interface : config.interfaces) DIBS_CHECK(bring_up(kernel, interface));
  return bring_up(kernel, name);
}

Result<> make_vlan(Netlink& kernel, const std::string& parent, int id) {
  DIBS_TRY(const KernelLink below, kernel.link(parent));
  DIBS_CHECK(bring_up(kernel, parent));
  const std::string name = cat(parent, ".", id);
  if (!is_interface_name(name))
    return Error::invalid(cat("VLAN device ", name, ": the name is too long"));
  DIBS_TRY(const auto there, kernel.find_link(name));
  if (!there) DIBS_CHECK(kernel.add_vlan(name, below.index, id));
  DIBS_TRY(const KernelLink vlan, kernel.link(name));
  if (vlan.kind != "vlan" || vlan.vlan_id != id || vlan.parent != below.index) {
    return Error::invalid(
        cat("interface ", quoted(name), " is there and is not VLAN ", id, " of ", parent));
  }
  return bring_up(kernel, name);
}

}  // namespace

Result<IfacerConfig> read_ifacer_config(const Value& value) {
  IfacerConfig out;
  for (const auto& name : value["interfaces"].items()) {
    if (!is_interface_name(name.as_string())) {
      return Error::invalid(
          cat("interfaces: ", quoted(name.as_string()), " is no interface's name"));
    }
    out.interfaces.push_back(name.str());
  }
  if (out.interfaces.empty()) return Error::invalid("interfaces: at least one is needed");
  const Value& vlan = value["vlanID"];
  if (!vlan.is_null() && (!vlan.is_integer() || vlan.as_int() < 0 || vlan.as_int() > 4094)) {
    return Error::invalid("vlanID: must be 0 to 4094");
  }
  out.vlan_id = static_cast<int>(vlan.as_int());
  if (out.interfaces.size() > 1) {
    const Value& bond = value["bond"];
    out.bond_name = bond["name"].str();
    if (!is_interface_name(out.bond_name)) {
      return Error::invalid(cat("bond.name: several interfaces need a bond with a name of at most ",
                                kInterfaceNameMaxLength, " characters"));
    }
    const Value& mode = bond["mode"];
    if (!mode.is_integer() || mode.as_int() < 0 || mode.as_int() > 6) {
      return Error::invalid("bond.mode: must be 0 to 6");
    }
    out.bond.mode = static_cast<int>(mode.as_int());
    out.bond.options = bond["options"].str();
  }
  return out;
}

Result<Value> run_ifacer(const PluginCall& call) {
  if (call.command == "DEL") return Value();
  DIBS_TRY(const IfacerConfig config, read_ifacer_config(call.config));
  const std::string base = config.bond_name.empty() ? config.interfaces.front() : config.bond_name;
  DIBS_TRY(Netlink kernel, Netlink::open());
  if (call.command == "CHECK") {
    DIBS_CHECK(kernel.link(config.vlan_id > 0 ? cat(base, ".", config.vlan_id) : base));
    return Value();
  }
  if (!config.bond_name.empty()) DIBS_CHECK(make_bond(kernel, config));
  if (config.vlan_id > 0) DIBS_CHECK(make_vlan(kernel, base, config.vlan_id));
  return pass_on(call);
}

}  // namespace dibs::drivers::net
