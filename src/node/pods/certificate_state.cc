#include "node/pods/certificate_state.h"

#include <algorithm>

#include "base/strings.h"
#include "net/key_pair.h"

namespace dibs::node {
namespace {

using json::Value;
using Phase = CertificateState::Phase;

constexpr Duration kOverdue = std::chrono::minutes(10);
constexpr Duration kRetry = std::chrono::seconds(30);

Time time_of(const Value& text) {
  const auto time = parse_rfc3339(text.as_string());
  return time ? *time : Time();
}

std::string said(const CertificateState& state) {
  return cat("reason=", quoted(state.reason), " message=", quoted(state.message));
}

}  // namespace

bool CertificateState::wants_request(Time now) const {
  if (now < retry) return false;
  return phase == Phase::initial || (phase == Phase::fresh && now >= begin_refresh);
}

std::optional<Time> CertificateState::next_look() const {
  if (phase == Phase::initial && retry > Time()) return retry;
  if (phase == Phase::fresh) return std::max(begin_refresh, retry);
  if (phase != Phase::refreshing) return std::nullopt;
  std::optional<Time> next;
  const auto add = [&next](Time at) {
    // What has to be told is told once the time is past.
    at = at + std::chrono::seconds(1);
    if (!next || at < *next) next = at;
  };
  if (!told_overdue) add(begin_refresh + kOverdue);
  if (!told_expired) add(not_after);
  return next;
}

Result<PodCredential> CertificateState::get() const {
  switch (phase) {
    case Phase::fresh:
    case Phase::refreshing:
      return credential;
    case Phase::denied:
      return Error::forbidden(cat("PodCertificateRequest was permanently denied: ", said(*this)));
    case Phase::failed:
      return Error::internal(cat("PodCertificateRequest was permanently failed: ", said(*this)));
    case Phase::initial:
    case Phase::waiting:
      break;
  }
  return Error::unavailable("credential bundle is not issued yet");
}

std::string_view CertificateState::word(Time now) const {
  switch (phase) {
    case Phase::fresh:
    case Phase::refreshing:
      if (now > not_after) return "expired";
      return now > begin_refresh + kOverdue ? "overdue_for_refresh" : "fresh";
    case Phase::denied:
      return "denied";
    case Phase::failed:
      return "failed";
    case Phase::initial:
    case Phase::waiting:
      break;
  }
  return "not_yet_issued";
}

void note_requested(CertificateState& state, std::string name, std::string key_pem) {
  state.phase = state.phase == Phase::fresh ? Phase::refreshing : Phase::waiting;
  state.request = std::move(name);
  state.pending_key = std::move(key_pem);
}

void note_lost(CertificateState& state, Time now) {
  if (!state.is_waiting()) return;
  state.retry = now + kRetry;
  state.phase = state.phase == Phase::refreshing ? Phase::fresh : Phase::initial;
  state.request.clear();
  state.pending_key.clear();
}

void note_failure(CertificateState& state, Time now) {
  if (state.phase == Phase::fresh) state.retry = now + kRetry;
}

std::optional<CertificateNote> note_answer(CertificateState& state, const Value& request,
                                           Duration jitter) {
  if (!state.is_waiting()) return std::nullopt;
  const Value& status = request["status"];
  for (const Value& condition : status["conditions"].items()) {
    const std::string_view type = condition["type"].as_string();
    if (type == "Issued") {
      CertificateState next;
      next.phase = Phase::fresh;
      next.credential.key = std::move(state.pending_key);
      next.credential.chain = net::clean_certificate_chain(status["certificateChain"].as_string());
      next.begin_refresh = time_of(status["beginRefreshAt"]) + jitter;
      next.not_after = time_of(status["notAfter"]);
      state = std::move(next);
      return std::nullopt;
    }
    const bool denied = type == "Denied";
    if (!denied && type != "Failed") continue;
    CertificateState next;
    next.phase = denied ? Phase::denied : Phase::failed;
    next.reason = condition["reason"].str();
    next.message = condition["message"].str();
    state = std::move(next);
    const Value& metadata = request["metadata"];
    return CertificateNote{
        std::string(type),
        cat("PodCertificateRequest ", metadata["namespace"].as_string(), "/",
            metadata["name"].as_string(), denied ? " was denied" : " failed",
            ", reason=", quoted(state.reason), ", message=", quoted(state.message))};
  }
  return std::nullopt;
}

std::vector<CertificateNote> note_age(CertificateState& state, Time now) {
  std::vector<CertificateNote> notes;
  if (state.phase != Phase::fresh && state.phase != Phase::refreshing) return notes;
  if (!state.told_overdue && now > state.begin_refresh + kOverdue) {
    state.told_overdue = true;
    notes.push_back({"CertificateOverdueForRefresh", "PodCertificate refresh overdue"});
  }
  if (!state.told_expired && now > state.not_after) {
    state.told_expired = true;
    notes.push_back({"CertificateExpired", "PodCertificate expired"});
  }
  return notes;
}

}  // namespace dibs::node
