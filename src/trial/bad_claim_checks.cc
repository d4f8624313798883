// Claims as they should not be: an error for that claim, none for the others, and no crash.
#include "trial/checks.h"

namespace dibs::trial {
namespace {

using json::Value;

/// Prepares `bad`, with a good claim in the same call where there is a device left for one.
/// `whole`: the driver may refuse the call as a whole, as Kubernetes' own helper does for claims
/// that it cannot read; then the good claim has to be prepared by the next call.
Verdict refused(Trial& trial, const TriedClaim& bad, const Offered* left, std::string_view what,
                bool whole) {
  const std::string expected = cat("an error for ", what);
  std::vector<TriedClaim> claims = {bad};
  if (left != nullptr) {
    DIBS_TRY(claims.emplace_back(), trial.claim(*left));
  }
  const auto answers = trial.prepare_all(claims);
  std::string said;
  if (!answers) {
    said = answers.error().message();
    if (!trial.program.is_running()) return unmet(expected, said);
    if (!whole && claims.size() > 1) {
      return unmet(cat(expected, " alone, and an answer for the other claim of the call"),
                   cat("an error for both: ", said));
    }
  } else {
    const auto found = answers->find(bad.uid());
    if (found == answers->end()) return unmet(expected, "no entry for its uid");
    said = found->second.error;
    if (said.empty()) return unmet(expected, cat("success, ", text_of(found->second.devices)));
  }
  if (claims.size() > 1) {
    const TriedClaim& good = claims.back();
    if (answers) {
      const auto found = answers->find(good.uid());
      if (found == answers->end() || !found->second.error.empty()) {
        return unmet(cat("the other claim of the call to be prepared beside ", what),
                     found == answers->end() ? "no entry for its uid" : found->second.error);
      }
      DIBS_CHECK(check_answer(good, found->second.devices));
    }
    // Also where the call was refused as a whole: it comes again without the bad one.
    DIBS_TRY(const auto again, trial.prepared_well(good));
  }
  // An agent takes back what it asked for, whatever the answer was.
  DIBS_CHECK(trial.unprepare(bad.ref, cat(what, ", which was refused,")));
  if (claims.size() > 1) DIBS_CHECK(trial.unprepare(claims.back()));
  DIBS_CHECK(trial.check_gone(bad));
  return said;
}

Verdict missing_claim(Trial& trial) {
  DIBS_TRY(const auto bad, trial.claim(trial.device()));
  DIBS_TRY(const auto removed, trial.stage.api().remove(kClaims, bad.ref.name_space, bad.ref.name));
  return refused(trial, bad, trial.other_device(), "a claim that is not there", true);
}

Verdict wrong_uid(Trial& trial) {
  DIBS_TRY(auto bad, trial.claim(trial.device()));
  bad.ref.uid = runtime::make_uuid(trial.stage.runtime().random);
  return refused(trial, bad, trial.other_device(),
                 "a claim that was replaced by another of its name", true);
}

Verdict other_driver(Trial& trial) {
  const auto foreign = [&](std::string_view request) {
    return Value::object({{"request", request},
                          {"driver", "other.example.com"},
                          {"pool", trial.device().pool},
                          {"device", trial.device().name()}});
  };
  DIBS_TRY(const auto mixed, trial.claim({trial.result_for(trial.device()), foreign("other")}));
  DIBS_TRY(const auto answer, trial.prepared_well(mixed));
  DIBS_CHECK(trial.unprepare(mixed));
  // No device is in two claims, anybody's.
  trial.clear();
  DIBS_TRY(const auto theirs, trial.claim({foreign("device")}));
  const auto answers = trial.prepare_all({theirs});
  if (!answers) return answers.error().message();
  for (const auto& [uid, one] : *answers) {
    if (one.error.empty() && !one.devices.empty()) {
      return unmet("no device of a claim that is another driver's alone", text_of(one.devices));
    }
  }
  return "";
}

Verdict unknown_device(Trial& trial) {
  Value result = trial.result_for(trial.device());
  result.set("device", "no-such-device");
  DIBS_TRY(const auto bad, trial.claim({std::move(result)}));
  return refused(trial, bad, &trial.device(), "a device that the driver does not have", false);
}

Verdict bad_parameters(Trial& trial) {
  const Value parameters = Value::object({{"apiVersion", "nobody.example.com/v0"},
                                          {"kind", "NoSuchParameters"},
                                          {"sharing", Value::array({"what", "is", "this"})},
                                          {"count", "many"}});
  DIBS_TRY(const auto bad, trial.claim(trial.device(), parameters));
  return refused(trial, bad, trial.other_device(), "parameters of a kind that nobody knows", false);
}

}  // namespace

std::vector<Check> bad_claim_checks() {
  return {
      {"missing-claim", "a claim that is not there is refused, others are not", missing_claim},
      {"wrong-uid", "so is one that was replaced by another of its name", wrong_uid},
      {"other-driver", "devices of other drivers are left alone", other_driver},
      {"unknown-device", "a device that the driver does not have is refused, others are not",
       unknown_device},
      {"bad-parameters", "so are opaque parameters of a kind that nobody knows", bad_parameters},
  };
}

}  // namespace dibs::trial
