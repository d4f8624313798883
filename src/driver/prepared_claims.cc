#include "driver/prepared_claims.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "cdi/names.h"
#include "driver/device_metadata.h"
#include "driver/guarded.h"

namespace dibs::driver {
namespace {

using json::Value;

constexpr std::string_view kCommon = "common";
constexpr unsigned kFileMode = 0644;
constexpr unsigned kPrivateMode = 0600;

bool holds(const std::vector<CheckpointEntry>& entries, std::string_view uid) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const CheckpointEntry& entry) { return entry.uid == uid; });
}

Value devices_for_checkpoint(const Claim& claim) {
  Value list = Value::array();
  for (const auto& device : claim.devices) {
    Value entry = Value::object({{"pool", device.pool}, {"device", device.device}});
    if (device.admin_access || !device.share_id.empty()) entry.set("shared", true);
    list.push(std::move(entry));
  }
  return list;
}

}  // namespace

PreparedClaims::PreparedClaims(Driver& driver, runtime::Files& files, PreparedClaimsOptions options)
    : driver_(driver),
      files_(files),
      options_(std::move(options)),
      checkpoint_(files, options_.checkpoint_path, options_.checkpoint_api_version) {}

std::string PreparedClaims::vendor() const { return cat("k8s.", options_.driver_name); }

std::string PreparedClaims::file_of(std::string_view id) const {
  return cat(options_.cdi_dir, "/", cdi::spec_file_name(vendor(), options_.cdi_class, id));
}

std::string PreparedClaims::device_name(std::string_view uid, const PreparedDevice& device) const {
  if (options_.cdi_per_claim) return std::string(uid);
  std::string name = cat(uid, "-", device.device);
  if (!device.share_id.empty()) append(name, "-", device.share_id);
  return name;
}

Result<> PreparedClaims::write_common() {
  if (options_.common_edits.empty()) return success();
  cdi::Spec spec;
  spec.kind = cat(vendor(), "/", options_.cdi_class);
  cdi::Device device;
  device.name = kCommon;
  device.edits = options_.common_edits;
  spec.devices.push_back(std::move(device));
  spec.version = cdi::minimum_version(spec);
  auto written = files_.write(file_of(kCommon), cdi::write_yaml(spec), kFileMode);
  if (!written) {
    return written.error().within("unable to create CDI spec file for common edits");
  }
  return success();
}

Result<> PreparedClaims::check_free(const std::vector<CheckpointEntry>& entries,
                                    const Claim& claim) const {
  for (const auto& device : claim.devices) {
    if (device.admin_access || !device.share_id.empty()) continue;
    for (const auto& entry : entries) {
      for (const auto& held : entry.devices.items()) {
        if (held["shared"].as_bool() || held["pool"].as_string() != device.pool ||
            held["device"].as_string() != device.device) {
          continue;
        }
        return Error::conflict(cat("device ", device.device, " of pool ", device.pool,
                                   " is still prepared for claim ", entry.uid));
      }
    }
  }
  return success();
}

Result<> PreparedClaims::write_claim_file(const Claim& claim,
                                          const std::vector<PreparedDevice>& devices) {
  cdi::Spec spec;
  spec.kind = cat(vendor(), "/", options_.cdi_class);
  for (const auto& prepared : devices) {
    if (spec.version.empty()) spec.version = prepared.cdi_version;
    if (prepared.edits.empty()) continue;
    if (options_.cdi_per_claim && !spec.devices.empty()) {
      spec.devices.front().edits.append(prepared.edits);
      continue;
    }
    cdi::Device device;
    device.name = device_name(claim.id.uid, prepared);
    device.edits = prepared.edits;
    spec.devices.push_back(std::move(device));
  }
  if (spec.devices.empty()) return success();
  if (spec.version.empty()) spec.version = cdi::minimum_version(spec);
  DIBS_CHECK(cdi::validate(spec));
  if (options_.cdi_per_claim) {
    return files_.write(file_of(claim.id.uid), cdi::write_sorted_yaml(spec), kPrivateMode);
  }
  return files_.write(file_of(claim.id.uid), cdi::write_yaml(spec), kFileMode);
}

std::vector<Answer> PreparedClaims::answers(const Claim& claim,
                                            const std::vector<PreparedDevice>& devices) const {
  std::vector<Answer> out;
  std::set<std::string> with_metadata;
  const bool of_claim = options_.cdi_per_claim &&
                        std::any_of(devices.begin(), devices.end(),
                                    [](const PreparedDevice& one) { return !one.edits.empty(); });
  for (const auto& prepared : devices) {
    Answer answer;
    answer.request = prepared.request.substr(0, prepared.request.find('/'));
    answer.pool = prepared.pool;
    answer.device = prepared.device;
    answer.share_id = prepared.share_id;
    answer.cdi_ids = prepared.cdi_ids;
    if (!options_.common_edits.empty()) {
      answer.cdi_ids.insert(answer.cdi_ids.begin(),
                            cdi::qualified_name(vendor(), options_.cdi_class, kCommon));
    }
    if (of_claim || !prepared.edits.empty()) {
      answer.cdi_ids.push_back(
          cdi::qualified_name(vendor(), options_.cdi_class, device_name(claim.id.uid, prepared)));
    }
    if (options_.metadata != nullptr && with_metadata.insert(answer.request).second) {
      answer.cdi_ids.push_back(options_.metadata->cdi_id(claim.id, answer.request));
    }
    out.push_back(std::move(answer));
  }
  return out;
}

Result<std::vector<Answer>> PreparedClaims::prepare(Claim claim) {
  auto entries = checkpoint_.read();
  if (!entries) return entries.error().within("unable to sync from checkpoint");
  claim.prepared = holds(*entries, claim.id.uid);
  if (!claim.prepared && options_.guard_devices) DIBS_CHECK(check_free(*entries, claim));
  auto devices = guarded([&] { return driver_.prepare(claim); });
  if (!devices) {
    return devices.error().within(claim.prepared ? "unable to restore from checkpoint"
                                                 : "prepare failed");
  }
  if (!claim.prepared || !files_.exists(file_of(claim.id.uid))) {
    auto written = write_claim_file(claim, *devices);
    if (!written) return written.error().within("unable to create CDI spec file for claim");
  }
  if (options_.metadata != nullptr &&
      !(claim.prepared && options_.metadata->exists(claim.id, *devices))) {
    // A pod can live without the file, but not without its device.
    if (auto written = options_.metadata->write(claim, *devices); !written) {
      log::error("writing device metadata failed",
                 {{"claim", claim.id.uid}, {"error", written.error()}});
    }
  }
  if (!claim.prepared) {
    CheckpointEntry entry;
    entry.uid = claim.id.uid;
    if (options_.guard_devices) entry.devices = devices_for_checkpoint(claim);
    entries->push_back(std::move(entry));
    auto written = checkpoint_.write(*entries);
    if (!written) return written.error().within("unable to sync to checkpoint");
  }
  return answers(claim, *devices);
}

Result<> PreparedClaims::unprepare(const ClaimName& claim) {
  DIBS_CHECK(check_name(claim));
  auto read = checkpoint_.read();
  if (!read) {
    // A file that cannot be read must not keep pods from ending: it starts over.
    log::error("checkpoint cannot be read, starting a new one", {{"error", read.error()}});
  }
  std::vector<CheckpointEntry> entries = read ? *read : std::vector<CheckpointEntry>();
  auto undone = guarded([&] { return driver_.unprepare(claim); });
  if (!undone) return undone.error().within("unprepare failed");
  if (options_.metadata != nullptr) {
    auto removed = options_.metadata->remove(claim);
    if (!removed) return removed.error().within("unable to delete metadata files for claim");
  }
  auto removed = files_.remove(file_of(claim.uid));
  if (!removed) return removed.error().within("unable to delete CDI spec file for claim");
  const auto gone =
      std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.uid == claim.uid; });
  if (gone == 0 && read) return success();
  auto written = checkpoint_.write(entries);
  if (!written) return written.error().within("unable to sync to checkpoint");
  return success();
}

Result<> PreparedClaims::collect_garbage() {
  DIBS_TRY(const auto entries, checkpoint_.read());
  DIBS_TRY(const auto names, files_.list(options_.cdi_dir));
  const std::string begin = cat(vendor(), "-", options_.cdi_class, "_");
  for (const auto& name : names) {
    if (!name.starts_with(begin)) continue;
    const std::string rest = name.substr(begin.size());
    const std::size_t dot = rest.find('.');
    const std::string id = rest.substr(0, dot);
    const bool unfinished = name.ends_with(".tmp");
    if (!unfinished && (id == kCommon || holds(entries, id))) continue;
    DIBS_CHECK(files_.remove(cat(options_.cdi_dir, "/", name)));
    log::info("removed a CDI file that nobody uses", {{"file", name}});
  }
  const std::size_t slash = options_.checkpoint_path.rfind('/');
  const std::string folder = options_.checkpoint_path.substr(0, slash);
  DIBS_TRY(const auto own, files_.list(folder));
  for (const auto& name : own) {
    const bool unfinished =
        name.starts_with(options_.checkpoint_path.substr(slash + 1)) && name.ends_with(".tmp");
    if (unfinished) DIBS_CHECK(files_.remove(cat(folder, "/", name)));
  }
  if (options_.metadata != nullptr) {
    DIBS_CHECK(options_.metadata->collect_garbage(
        [&](std::string_view uid) { return holds(entries, uid); }));
  }
  return success();
}

}  // namespace dibs::driver
