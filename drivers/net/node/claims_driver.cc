#include "drivers/net/node/claims_driver.h"

#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "base/strings.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/model/grant.h"
#include "drivers/net/objects/install.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using driver::PreparedDevice;
using json::Value;

constexpr const char* kLastRdmaFile = "/dev/infiniband/rdma_cm";

/// "spidernet.io/sriov_a" is SPIDERNET_IO_SRIOV_A.
std::string variable_of(std::string_view resource) {
  std::string out = to_upper(resource);
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return out;
}

/// What sriov-network-device-plugin tells of each function.
std::string info_of(const std::vector<std::string>& functions) {
  Value out = Value::object();
  for (const auto& pci : functions) {
    out.set(pci, Value::object({{"generic", Value::object({{"deviceID", pci}})}}));
  }
  return json::write(out);
}

}  // namespace

void ClaimsDriver::Hardware::add_rdma(const std::string& device) {
  if (device.empty()) return;
  if (std::find(rdma_devices.begin(), rdma_devices.end(), device) != rdma_devices.end()) return;
  rdma_devices.push_back(device);
}

ClaimsDriver::ClaimsDriver(const driver::Environment& environment, PodNetworksWriter& pods,
                           StateOfNode state, OfferDevices offer, ClaimsDriverOptions options)
    : api_(environment.api),
      pods_(pods),
      files_(environment.files, options.network_devices),
      state_(std::move(state)),
      offer_(std::move(offer)),
      options_(std::move(options)) {}

Result<std::vector<driver::Pool>> ClaimsDriver::devices() {
  if (!offer_) return std::vector<driver::Pool>();
  DIBS_TRY(auto devices, offer_());
  return std::vector<driver::Pool>{driver::make_pool(options_.node_name, std::move(devices))};
}

Result<ClaimParameter> ClaimsDriver::parameter_of(const driver::Claim& claim) const {
  const Value& reference = claim.object["spec"]["parametersRef"];
  if (claim.handles.empty() || reference.is_null()) return ClaimParameter();
  if (reference["apiGroup"].as_string() != kGroup) {
    return Error::invalid(cat("incorrect API Group: ", reference["apiGroup"].as_string()));
  }
  if (reference["kind"].as_string() != "SpiderClaimParameter") {
    return Error::invalid(cat("incorrect kind: ", reference["kind"].as_string()));
  }
  const auto name = reference["name"].as_string();
  auto object = api_.get(kClaimParameters, claim.id.name_space, name);
  if (!object) {
    // What was prepared stays as it is, whatever became of the parameters.
    if (claim.prepared && object.error().code() == Code::not_found) return ClaimParameter();
    return object.error().within(
        cat("failed to getting SpiderClaimParameters ", claim.id.name_space, "/", name));
  }
  return parse_claim_parameter(*object);
}

Result<> ClaimsDriver::add_function(const NodeState& state, const std::string& pool,
                                    const std::string& pci, bool must_be_free,
                                    Hardware& out) const {
  out.functions[pool].push_back(pci);
  const auto found = state.vf(pci);
  if (!found) {
    // A physical function that is given as a whole.
    const auto whole = std::find_if(state.interfaces.begin(), state.interfaces.end(),
                                    [&](const Interface& one) { return one.pci_address == pci; });
    if (whole == state.interfaces.end()) {
      return Error::unavailable(cat("function ", pci, " of ", pool, " is not there any more"));
    }
    if (whole->rdma) out.add_rdma(whole->rdma->device);
    return success();
  }
  if (must_be_free && !found->vf->available) {
    return Error::unavailable(
        cat("no available VF on ", found->pf->name, ": ", pci, " is still in use"));
  }
  out.add_rdma(found->vf->rdma_device);
  return success();
}

Result<ClaimsDriver::Hardware> ClaimsDriver::granted(const driver::Claim& claim,
                                                     bool& rdma_acc) const {
  Hardware out;
  for (const auto& handle : claim.handles) {
    if (handle.data.empty()) continue;
    auto grant = parse_handle(handle.data);
    if (!grant) return grant.error().within("allocation of the claim");
    if (grant->node != options_.node_name) {
      return Error::invalid(
          cat("the claim is allocated for node ", grant->node, ", this is ", options_.node_name));
    }
    rdma_acc = rdma_acc || grant->rdma_acc;
    for (const Given& nic : grant->nics) {
      out.add_rdma(nic.rdma_device);
      if (nic.vf.empty()) continue;
      for (const Value& user : claim.object["status"]["reservedFor"].items()) {
        out.interfaces.push_back({user["uid"].str(), nic.interface, nic.vf});
      }
    }
    if (grant->resources.empty()) continue;
    const auto state = state_();
    if (!state) return Error::unavailable("what this node has is not known yet");
    for (const auto& [pool, ids] : grant->resources) {
      const ResourcePool* known = state->pool(pool);
      if (known == nullptr) {
        return Error::unavailable(cat("this node has no resource ", pool, " any more"));
      }
      if (known->kind == PoolKind::sriov_vf) {
        for (const auto& pci : ids) {
          DIBS_CHECK(add_function(*state, pool, pci, !claim.prepared, out));
        }
      } else if (known->kind == PoolKind::rdma_shared) {
        for (const auto& name : known->devices) {
          const Interface* interface = state->find(name);
          if (interface != nullptr && interface->rdma) out.add_rdma(interface->rdma->device);
        }
      }
    }
  }
  return out;
}

Result<ClaimsDriver::Hardware> ClaimsDriver::allocated(const driver::Claim& claim) const {
  Hardware out;
  if (claim.devices.empty()) return out;
  const auto state = state_();
  if (!state) return Error::unavailable("what this node has is not known yet");
  for (const auto& device : claim.devices) {
    if (device.pool != options_.node_name) {
      return Error::invalid(cat("device ", device.device, " is on node ", device.pool, ", this is ",
                                options_.node_name));
    }
    const auto what = find_device(*state, device.device);
    if (!what) {
      // Interfaces come and go; a pod that had one may still be ended.
      if (claim.prepared) continue;
      return Error::unavailable(cat("device ", device.device, " is not there any more"));
    }
    if (!what->vf.empty()) {
      DIBS_CHECK(add_function(*state, what->resource_name, what->vf, !claim.prepared, out));
    } else if (what->is_share) {
      const ResourcePool* pool = state->pool(what->resource_name);
      for (const auto& name : pool == nullptr ? std::vector<std::string>() : pool->devices) {
        const Interface* interface = state->find(name);
        if (interface != nullptr && interface->rdma) out.add_rdma(interface->rdma->device);
      }
    }
  }
  return out;
}

cdi::ContainerEdits ClaimsDriver::edits_of(const driver::Claim& claim, const Hardware& hardware,
                                           bool rdma_acc) const {
  auto edits = driver::env_edits({cat("DRA_CLAIM_UID=", claim.id.uid)});
  const std::string& library = options_.host_device_path;
  if (rdma_acc && library.empty()) {
    log::warn("claim wants the RDMA library, and the driver was given none (--host-device-path)",
              {{"claim", claim.id.uid}});
  } else if (rdma_acc) {
    const std::string name = library.substr(library.rfind('/') + 1);
    edits.env.push_back(cat("LD_PRELOAD=", name));
    for (const char* folder : {"/usr/lib/", "/usr/lib64/"}) {
      cdi::Mount mount;
      mount.host_path = library;
      mount.container_path = cat(folder, name);
      mount.options = {"ro", "nosuid", "nodev", "bind"};
      edits.mounts.push_back(std::move(mount));
    }
  }
  for (const auto& [pool, functions] : hardware.functions) {
    const std::string variable = cat("PCIDEVICE_", variable_of(pool));
    edits.env.push_back(cat(variable, "=", join(functions, ",")));
    edits.env.push_back(cat(variable, "_INFO=", info_of(functions)));
  }
  std::vector<std::string> files;
  bool connects = false;
  for (const auto& device : hardware.rdma_devices) {
    for (auto& file : rdma_char_devices(options_.roots, device)) {
      if (file == kLastRdmaFile) {
        connects = true;
      } else {
        files.push_back(std::move(file));
      }
    }
  }
  if (connects) files.emplace_back(kLastRdmaFile);
  for (const auto& file : files) {
    cdi::DeviceNode node;
    node.path = file;
    if (options_.roots.dev != "/dev") {
      node.host_path = cat(options_.roots.dev, file.substr(std::string_view("/dev").size()));
    }
    node.permissions = "rw";
    edits.device_nodes.push_back(std::move(node));
  }
  return edits;
}

Result<std::vector<PreparedDevice>> ClaimsDriver::prepare(const driver::Claim& claim) {
  DIBS_TRY(const ClaimParameter parameter, parameter_of(claim));
  bool rdma_acc = parameter.rdma_acc;
  Hardware hardware;
  if (claim.handles.empty()) {
    DIBS_TRY(hardware, allocated(claim));
    DIBS_TRY(hardware.interfaces, pods_.make_ready(claim.object));
  } else {
    DIBS_TRY(hardware, granted(claim, rdma_acc));
  }
  DIBS_CHECK(files_.write(claim.id.uid, hardware.interfaces));
  std::vector<PreparedDevice> out;
  for (const auto& device : claim.devices) out.push_back(driver::prepared(device));
  if (out.empty()) out.emplace_back();
  out.front().edits = edits_of(claim, hardware, rdma_acc);
  out.front().cdi_version = parameter.cdi_version;
  return out;
}

Result<> ClaimsDriver::unprepare(const driver::ClaimName& claim) {
  return files_.remove(claim.uid);
}

}  // namespace dibs::drivers::net
