#include <array>
#include <cstdint>

#include "base/strings.h"
#include "json/parse.h"
#include "node/plugins/claim_cache.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::string_view kKind = "DRACheckpoint";
constexpr std::string_view kVersion = "checkpoint.dra.kubelet.k8s.io/v1";

std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xEDB88320U : 0U);
      out[i] = c;
    }
    return out;
  }();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (crc >> 8);
  }
  return crc ^ 0xFFFFFFFFU;
}

/// As Go writes a slice: null when nothing was ever put into it.
Value strings(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  Value out = Value::array();
  for (const auto& text : texts) out.push(text);
  return out;
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.str());
  return out;
}

Value device_value(const PreparedDevice& device) {
  return Value::object({{"PoolName", device.pool},
                        {"DeviceName", device.device},
                        {"ShareID", device.share_id.empty() ? Value() : Value(device.share_id)},
                        {"RequestNames", strings(device.requests)},
                        {"CDIDeviceIDs", strings(device.cdi_ids)}});
}

Value claim_value(const ClaimInfo& claim) {
  Value pods = Value::object();
  for (const auto& pod : claim.pods) pods.set(pod, Value::object());
  Value drivers = Value::object();
  for (const auto& [name, state] : claim.drivers) {
    Value devices;
    for (const auto& device : state.devices) devices.push(device_value(device));
    Value driver = Value::object({{"Devices", devices}});
    if (!state.skip.empty()) driver.set("skipNodeOperations", strings(state.skip));
    drivers.set(name, driver);
  }
  Value out = Value::object({{"ClaimUID", claim.uid},
                             {"ClaimName", claim.name},
                             {"Namespace", claim.name_space},
                             {"PodUIDs", pods},
                             {"DriverState", drivers}});
  if (!claim.classic) return out;
  out.set("ClassName", claim.class_name);
  Value handles = Value::array();
  for (const auto& handle : claim.handles) {
    Value entry = Value::object({{"driverName", handle.driver}, {"data", handle.data}});
    if (!handle.structured.is_null()) entry.set("structuredData", handle.structured);
    handles.push(entry);
  }
  out.set("ResourceHandles", handles);
  return out;
}

ClaimInfo claim_from(const Value& value) {
  ClaimInfo claim;
  claim.uid = value["ClaimUID"].str();
  claim.name = value["ClaimName"].str();
  claim.name_space = value["Namespace"].str();
  for (const auto& [pod, nothing] : value["PodUIDs"].members()) claim.pods.emplace(pod);
  for (const auto& [name, state] : value["DriverState"].members()) {
    DriverState& driver = claim.drivers[std::string(name)];
    driver.skip = texts(state["skipNodeOperations"]);
    for (const auto& from : state["Devices"].items()) {
      PreparedDevice device;
      device.driver = name;
      device.pool = from["PoolName"].str();
      device.device = from["DeviceName"].str();
      device.share_id = from["ShareID"].str();
      device.requests = texts(from["RequestNames"]);
      device.cdi_ids = texts(from["CDIDeviceIDs"]);
      driver.devices.push_back(std::move(device));
    }
  }
  if (const auto* handles = value.find("ResourceHandles")) {
    claim.classic = true;
    claim.class_name = value["ClassName"].str();
    for (const auto& handle : handles->items()) {
      claim.handles.push_back(
          {handle["driverName"].str(), handle["data"].str(), handle["structuredData"]});
    }
  }
  return claim;
}

std::string sealed(const Value& list) {
  const std::string data = json::write(
      Value::object({{"kind", kKind}, {"apiVersion", kVersion}, {"ClaimInfoStateList", list}}),
      true);
  return json::write(Value::object({{"Data", data}, {"Checksum", crc32(data)}}), true);
}

}  // namespace

std::string empty_checkpoint() { return sealed({}); }

std::string encode_checkpoint(const std::vector<const ClaimInfo*>& claims) {
  Value list = Value::array();
  for (const auto* claim : claims) list.push(claim_value(*claim));
  return sealed(list);
}

Result<std::vector<ClaimInfo>> decode_checkpoint(std::string_view text) {
  DIBS_TRY(const Value outer, json::parse(text));
  const auto* data = outer.find("Data");
  if (!data || !data->is_string()) return Error::invalid("it has no Data");
  if (outer["Checksum"].as_int(-1) != static_cast<std::int64_t>(crc32(data->as_string()))) {
    return Error::invalid("its Checksum is not that of its Data");
  }
  DIBS_TRY(const Value inner, json::parse(data->as_string()));
  if (inner["kind"].as_string() != kKind || inner["apiVersion"].as_string() != kVersion) {
    return Error::invalid(cat("its Data is a ", quoted(inner["kind"].as_string()), " of ",
                              quoted(inner["apiVersion"].as_string()), ", not a ", quoted(kKind),
                              " of ", quoted(kVersion)));
  }
  std::vector<ClaimInfo> out;
  for (const auto& claim : inner["ClaimInfoStateList"].items()) out.push_back(claim_from(claim));
  return out;
}

}  // namespace dibs::node
