#include "drivers/net/model/grant.h"

#include <optional>

#include "drivers/net/model/field_reader.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::int64_t kHandleVersion = 1;

/// A PCI address, as against the number of a share.
bool is_function(const std::string& id) { return id.find(':') != std::string::npos; }

Value write(const Given& nic) {
  Value out = Value::object({{"interface", nic.interface}, {"multus", nic.multus}});
  const auto put = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) out.set(key, text);
  };
  put("cniType", nic.cni_type);
  put("master", nic.master);
  put("vf", nic.vf);
  put("rdmaDevice", nic.rdma_device);
  put("resourceName", nic.resource_name);
  return out;
}

Given read_nic(const FieldReader& in) {
  Given nic;
  nic.interface = in.text("interface");
  nic.multus = in.text("multus");
  nic.cni_type = in.text("cniType");
  nic.master = in.text("master");
  nic.vf = in.text("vf");
  nic.rdma_device = in.text("rdmaDevice");
  nic.resource_name = in.text("resourceName");
  return nic;
}

}  // namespace

std::string handle_of(const Grant& grant) {
  Value nics = Value::array();
  for (const auto& nic : grant.nics) nics.push(write(nic));
  Value resources = Value::object();
  for (const auto& [name, ids] : grant.resources) {
    Value list = Value::array();
    for (const auto& id : ids) list.push(id);
    resources.set(name, std::move(list));
  }
  return json::write(Value::object({{"version", kHandleVersion},
                                    {"node", grant.node},
                                    {"nics", std::move(nics)},
                                    {"resources", std::move(resources)},
                                    {"rdmaAcc", grant.rdma_acc}}));
}

Result<Grant> parse_handle(std::string_view handle) {
  const auto object = json::parse(handle);
  if (!object) return Error::invalid(object.error().message());
  std::optional<Error> error;
  const FieldReader in(*object, "", error);
  if (in.number("version") != kHandleVersion) in.fail("version", cat("must be ", kHandleVersion));
  Grant grant;
  grant.node = in.text("node");
  grant.rdma_acc = in.flag("rdmaAcc");
  for (std::size_t i = 0; i < in.list("nics").size(); ++i) {
    grant.nics.push_back(read_nic(in.item("nics", i)));
  }
  const FieldReader resources = in.in("resources");
  for (const auto& [name, ids] : (*object)["resources"].members()) {
    grant.resources[std::string(name)] = resources.texts(name);
  }
  if (error) return *std::move(error);
  return grant;
}

void Used::add(const Grant& grant) {
  for (const auto& [pool, ids] : grant.resources) {
    for (const auto& id : ids) {
      if (is_function(id)) {
        vfs.insert(id);
      } else {
        ++shares[pool];
      }
    }
  }
  for (const auto& nic : grant.nics) {
    if (!nic.vf.empty()) vfs.insert(nic.vf);
    if (!nic.master.empty()) masters[nic.master].insert(nic.cni_type);
  }
}

}  // namespace dibs::drivers::net
