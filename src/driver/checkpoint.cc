#include "driver/checkpoint.h"

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::driver {

using json::Value;

Checkpoint::Checkpoint(runtime::Files& files, std::string path, std::string api_version)
    : files_(files), path_(std::move(path)), api_version_(std::move(api_version)) {}

Result<std::vector<CheckpointEntry>> Checkpoint::read() const {
  auto text = files_.read(path_);
  if (!text) {
    if (text.error().code() == Code::not_found) return std::vector<CheckpointEntry>();
    return text.error();
  }
  auto parsed = json::parse(*text);
  if (!parsed)
    return Error::internal(cat("unmarshal JSON from ", path_, ": ", parsed.error().message()));
  if ((*parsed)["kind"].as_string() != "Checkpoint") {
    return Error::internal(cat(path_, ": not a checkpoint"));
  }
  std::vector<CheckpointEntry> entries;
  for (const auto& claim : (*parsed)["preparedClaims"].items()) {
    entries.push_back({claim["uid"].str(), claim["devices"]});
  }
  return entries;
}

Result<> Checkpoint::write(const std::vector<CheckpointEntry>& entries) const {
  Value file = Value::object({{"kind", "Checkpoint"}, {"apiVersion", api_version_}});
  if (!entries.empty()) {
    Value claims = Value::array();
    for (const auto& entry : entries) {
      Value claim = Value::object({{"uid", entry.uid}});
      if (!entry.devices.is_null()) claim.set("devices", entry.devices);
      claims.push(std::move(claim));
    }
    file.set("preparedClaims", std::move(claims));
  }
  return files_.write(path_, json::write_pretty(file) + "\n");
}

}  // namespace dibs::driver
