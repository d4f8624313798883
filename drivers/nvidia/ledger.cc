#include "drivers/nvidia/ledger.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia {
namespace {

using json::Value;

constexpr std::string_view kKind = "NvidiaLedger";
constexpr std::string_view kVersion = "nvidia.dibs.dev/v1";

Value texts_value(const std::vector<std::string>& texts) {
  Value out = Value::array();
  for (const auto& text : texts) out.push(text);
  return out;
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.str());
  return out;
}

Value instances_value(const std::vector<LedgerInstance>& instances) {
  Value out = Value::array();
  for (const auto& instance : instances) {
    Value entry = Value::object({{"device", instance.device},
                                 {"gpu", instance.gpu},
                                 {"profile", instance.profile},
                                 {"start", instance.placement.start},
                                 {"size", instance.placement.size}});
    if (instance.gpu_instance) {
      entry.set("gpuInstance", *instance.gpu_instance);
      if (instance.compute_instance != nvml::kNoInstance) {
        entry.set("computeInstance", instance.compute_instance);
      }
      entry.set("uuid", instance.uuid);
    } else {
      Value others = Value::array();
      for (const unsigned other : instance.others) others.push(other);
      entry.set("others", std::move(others));
    }
    out.push(std::move(entry));
  }
  return out;
}

unsigned number(const Value& value, unsigned fallback = 0) {
  return static_cast<unsigned>(value.as_int(fallback));
}

std::vector<LedgerInstance> instances_of(const Value& list) {
  std::vector<LedgerInstance> out;
  for (const auto& entry : list.items()) {
    LedgerInstance instance;
    instance.device = entry["device"].str();
    instance.gpu = entry["gpu"].str();
    instance.profile = number(entry["profile"]);
    instance.placement = {number(entry["start"]), number(entry["size"])};
    for (const auto& other : entry["others"].items()) instance.others.push_back(number(other));
    if (entry.contains("gpuInstance")) {
      instance.gpu_instance = number(entry["gpuInstance"]);
      instance.compute_instance = number(entry["computeInstance"], nvml::kNoInstance);
      instance.uuid = entry["uuid"].str();
    }
    out.push_back(std::move(instance));
  }
  return out;
}

Value claim_value(const LedgerClaim& claim) {
  Value out = Value::object({{"uid", claim.id.uid},
                             {"namespace", claim.id.name_space},
                             {"name", claim.id.name},
                             {"state", claim.ready ? "ready" : "preparing"}});
  const auto add = [&](const char* field, Value list) {
    if (!list.empty()) out.set(field, std::move(list));
  };
  add("gpus", texts_value(claim.gpus));
  add("instances", instances_value(claim.instances));
  add("sliced", texts_value(claim.sliced));
  add("exclusive", texts_value(claim.exclusive));
  Value daemons = Value::array();
  for (const auto& daemon : claim.daemons) {
    Value one = Value::object({{"id", daemon.id}, {"devices", texts_value(daemon.devices)}});
    if (daemon.active_thread_percentage) {
      one.set("activeThreadPercentage", *daemon.active_thread_percentage);
    }
    Value limits = Value::object();
    for (const auto& [uuid, limit] : daemon.pinned_memory_limits) limits.set(uuid, limit);
    if (!limits.empty()) one.set("pinnedMemoryLimits", std::move(limits));
    daemons.push(std::move(one));
  }
  add("daemons", std::move(daemons));
  return out;
}

LedgerClaim claim_of(const Value& entry) {
  LedgerClaim claim;
  claim.id = {entry["namespace"].str(), entry["name"].str(), entry["uid"].str()};
  claim.ready = entry["state"].as_string() == "ready";
  claim.gpus = texts_of(entry["gpus"]);
  claim.instances = instances_of(entry["instances"]);
  claim.sliced = texts_of(entry["sliced"]);
  claim.exclusive = texts_of(entry["exclusive"]);
  for (const auto& daemon : entry["daemons"].items()) {
    LedgerDaemon one;
    one.id = daemon["id"].str();
    one.devices = texts_of(daemon["devices"]);
    if (daemon.contains("activeThreadPercentage")) {
      one.active_thread_percentage = daemon["activeThreadPercentage"].as_int();
    }
    for (const auto& [uuid, limit] : daemon["pinnedMemoryLimits"].members()) {
      one.pinned_memory_limits[std::string(uuid)] = limit.str();
    }
    claim.daemons.push_back(std::move(one));
  }
  return claim;
}

}  // namespace

LedgerClaim* Ledger::find(std::string_view uid) {
  const auto found = std::find_if(claims.begin(), claims.end(),
                                  [&](const LedgerClaim& claim) { return claim.id.uid == uid; });
  return found == claims.end() ? nullptr : &*found;
}

void Ledger::erase(std::string_view uid) {
  std::erase_if(claims, [&](const LedgerClaim& claim) { return claim.id.uid == uid; });
}

LedgerFile::LedgerFile(runtime::Files& files, std::string path)
    : files_(files), path_(std::move(path)) {}

Result<Ledger> LedgerFile::read() {
  auto text = files_.read(path_);
  if (!text) {
    if (text.error().code() == Code::not_found) return Ledger();
    return text.error();
  }
  const auto parsed = json::parse(*text);
  if (!parsed || (*parsed)["kind"].as_string() != kKind ||
      (*parsed)["apiVersion"].as_string() != kVersion) {
    const std::string aside = cat(path_, ".unreadable");
    log::error(
        "the ledger of the GPUs cannot be read and is put aside; MIG instances in it are "
        "no longer destroyed",
        {{"file", path_}, {"kept", aside}});
    DIBS_CHECK(files_.write(aside, *text));
    DIBS_CHECK(files_.remove(path_));
    return Ledger();
  }
  Ledger ledger;
  for (const auto& entry : (*parsed)["claims"].items()) ledger.claims.push_back(claim_of(entry));
  for (const auto& [gpu, enabled] : (*parsed)["migModeBefore"].members()) {
    ledger.modes[std::string(gpu)] = enabled.as_bool();
  }
  ledger.orphans = instances_of((*parsed)["orphans"]);
  return ledger;
}

Result<> LedgerFile::write(const Ledger& ledger) {
  Value file = Value::object({{"kind", kKind}, {"apiVersion", kVersion}});
  Value claims = Value::array();
  for (const auto& claim : ledger.claims) claims.push(claim_value(claim));
  file.set("claims", std::move(claims));
  Value modes = Value::object();
  for (const auto& [gpu, enabled] : ledger.modes) modes.set(gpu, enabled);
  if (!modes.empty()) file.set("migModeBefore", std::move(modes));
  if (!ledger.orphans.empty()) file.set("orphans", instances_value(ledger.orphans));
  return files_.write(path_, json::write_pretty(file) + "\n");
}

}  // namespace dibs::drivers::nvidia
