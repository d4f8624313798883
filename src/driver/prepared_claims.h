#pragma once
// What is prepared: the driver's answer for a claim, its CDI file, its metadata files, its entry in
// the checkpoint.
//
// The order of writes makes it safe to be killed between any two of them:
//   prepare    driver, CDI file, metadata files, checkpoint
//   unprepare  driver, metadata files, CDI file, checkpoint
// A claim in the checkpoint whose CDI file is missing (killed in unprepare) gets it written again;
// files without an entry (killed in prepare) are removed by collect_garbage() at the next start.
// The agent repeats a call that got no answer, so nothing else has to be remembered.
//
// Not thread-safe for one claim: the caller serializes.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/checkpoint.h"
#include "driver/driver.h"
#include "runtime/files.h"

namespace dibs::driver {

class MetadataFiles;

struct PreparedClaimsOptions {
  std::string driver_name = {};
  std::string cdi_dir = {};
  /// Of the CDI kind, "k8s.<driver>/<class>".
  std::string cdi_class = {};
  /// One CDI device for the claim (PluginOptions::cdi_per_claim).
  bool cdi_per_claim = false;
  std::string checkpoint_path = {};
  std::string checkpoint_api_version = {};
  /// Keep each claim's devices in the checkpoint and refuse a device that another claim has.
  bool guard_devices = true;
  /// In every claim's devices, before the claim's own: a CDI device "common" with these edits.
  cdi::ContainerEdits common_edits = {};
  MetadataFiles* metadata = nullptr;
};

/// As a device goes to the agent.
struct Answer {
  std::string request = {};
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};
  std::vector<std::string> cdi_ids = {};
};

class PreparedClaims {
 public:
  PreparedClaims(Driver& driver, runtime::Files& files, PreparedClaimsOptions options);

  /// Writes the common CDI file where there are common edits.
  Result<> write_common();
  Result<std::vector<Answer>> prepare(Claim claim);
  Result<> unprepare(const ClaimName& claim);
  /// Removes what a killed process left: CDI and metadata files of claims that are not prepared.
  Result<> collect_garbage();

  const PreparedClaimsOptions& options() const { return options_; }

 private:
  std::string vendor() const;
  std::string file_of(std::string_view id) const;
  std::string device_name(std::string_view uid, const PreparedDevice& device) const;
  Result<> check_free(const std::vector<CheckpointEntry>& entries, const Claim& claim) const;
  Result<> write_claim_file(const Claim& claim, const std::vector<PreparedDevice>& devices);
  std::vector<Answer> answers(const Claim& claim, const std::vector<PreparedDevice>& devices) const;

  Driver& driver_;
  runtime::Files& files_;
  PreparedClaimsOptions options_;
  Checkpoint checkpoint_;
};

}  // namespace dibs::driver
