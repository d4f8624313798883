// Claims as they should be: prepared, prepared again, taken back.
#include "trial/checks.h"

namespace dibs::trial {
namespace {

Verdict empty_call(Trial& trial) {
  const auto prepared = trial.agent.driver().prepare({});
  if (!prepared) return unmet("success of a call without claims", prepared.error().message());
  const auto unprepared = trial.agent.driver().unprepare({});
  if (!unprepared) return unmet("success of a call without claims", unprepared.error().message());
  return "";
}

Verdict prepare(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto answer, trial.prepared_well(claim));
  std::size_t ids = 0;
  for (const auto& device : answer.devices) ids += device.cdi_ids.size();
  if (ids == 0) return "no CDI ids: containers are not changed by them";
  return text_of(answer.devices);
}

Verdict prepare_again(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto first, trial.prepared_well(claim));
  DIBS_TRY(const auto second, trial.prepared_well(claim));
  if (text_of(first.devices) == text_of(second.devices)) return "";
  return unmet(cat("the same answer as before, ", text_of(first.devices)), text_of(second.devices));
}

std::string one_version(Trial& trial) {
  return trial.agent.offers("v1.DRAPlugin") && trial.agent.offers("v1beta1.DRAPlugin")
             ? ""
             : "the driver offers one version of DRAPlugin";
}

Verdict both_versions(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  const auto v1 = trial.agent.driver_in(node::DraApi::v1);
  const auto v1beta1 = trial.agent.driver_in(node::DraApi::v1beta1);
  auto newer = trial.prepare(*v1, claim);
  if (!newer) return newer.error().within("v1");
  auto older = trial.prepare(*v1beta1, claim);
  if (!older) return older.error().within("v1beta1");
  // Only v1 knows of shares.
  for (auto& device : newer->devices) device.share_id.clear();
  if (text_of(newer->devices) == text_of(older->devices)) return "";
  return unmet(cat("the same answer in v1beta1 as in v1, ", text_of(newer->devices)),
               text_of(older->devices));
}

Verdict unprepare(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto answer, trial.prepared_well(claim));
  DIBS_CHECK(trial.unprepare(claim));
  DIBS_CHECK(trial.check_gone(claim));
  return "";
}

Verdict unprepare_again(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto answer, trial.prepared_well(claim));
  DIBS_CHECK(trial.unprepare(claim));
  DIBS_CHECK(trial.unprepare(claim.ref, "a claim that was unprepared before"));
  return "";
}

Verdict unprepare_unknown(Trial& trial) {
  node::ClaimRef claim;
  claim.name_space = "default";
  claim.name = "never-seen";
  claim.uid = runtime::make_uuid(trial.stage.runtime().random);
  DIBS_CHECK(trial.unprepare(claim, "a claim that was never prepared"));
  return "";
}

std::string one_device(Trial& trial) {
  return trial.other_device() != nullptr ? ""
                                         : "there are no two devices that can be in use at once";
}

Verdict two_claims(Trial& trial) {
  DIBS_TRY(const auto first, trial.claim(trial.device()));
  DIBS_TRY(const auto second, trial.claim(*trial.other_device()));
  const auto answers = trial.prepare_all({first, second});
  if (!answers) return unmet("an answer to NodePrepareResources", answers.error().message());
  for (const TriedClaim* claim : {&first, &second}) {
    const auto found = answers->find(claim->uid());
    if (found == answers->end()) {
      return unmet("an entry for each of two claims", cat(answers->size()));
    }
    if (!found->second.error.empty()) {
      return unmet("both claims of a call to be prepared", found->second.error);
    }
    DIBS_CHECK(check_answer(*claim, found->second.devices));
  }
  DIBS_CHECK(trial.unprepare(first));
  DIBS_TRY(const auto still, trial.prepared_well(second));
  return "";
}

Verdict claim_deleted(Trial& trial) {
  DIBS_TRY(const auto claim, trial.claim(trial.device()));
  DIBS_TRY(const auto answer, trial.prepared_well(claim));
  DIBS_TRY(const auto removed,
           trial.stage.api().remove(kClaims, claim.ref.name_space, claim.ref.name));
  DIBS_CHECK(trial.unprepare(claim.ref, "a claim whose object was deleted"));
  DIBS_CHECK(trial.check_gone(claim));
  return "";
}

}  // namespace

std::vector<Check> claim_checks() {
  return {
      {"empty-call", "calls without claims succeed, as probes make them", empty_call},
      {"prepare", "a claim's devices are answered, with CDI ids that files define", prepare},
      {"prepare-again", "asked again, the driver answers the same", prepare_again},
      {"versions", "DRAPlugin v1 and v1beta1 answer the same", both_versions, one_version},
      {"two-claims", "two claims of one call are prepared, and one goes without the other",
       two_claims, one_device},
      {"unprepare", "nothing of a claim is left in the CDI folder", unprepare},
      {"unprepare-again", "asked again, the driver succeeds", unprepare_again},
      {"unprepare-unknown", "so it does for a claim that it never saw", unprepare_unknown},
      {"claim-deleted", "a claim is unprepared when its object is gone", claim_deleted},
  };
}

}  // namespace dibs::trial
