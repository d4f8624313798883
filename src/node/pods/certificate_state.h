#pragma once
// The life of one certificate of a pod, as functions: what is known of it, what happened, what is
// to be done next. Time and chance come from the caller (pod_certificates.h).
//
//    initial ──▶ waiting ──▶ fresh ──▶ refreshing
//                   │ │        ▲           │ │ │
//                   │ │        └───────────┘ │ │
//                   │ └▶ denied ◀────────────┘ │
//                   └──▶ failed ◀──────────────┘
//
// A request that was asked for and is gone is asked for anew: waiting goes back to initial,
// refreshing to fresh. Denied and failed are for the life of the pod.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::node {

/// As PEM. What a pod finds in its volume.
struct PodCredential {
  std::string key = {};
  std::string chain = {};
};

/// A Warning event about the pod.
struct CertificateNote {
  std::string reason = {};
  std::string text = {};
};

struct CertificateState {
  enum class Phase : char { initial, waiting, fresh, refreshing, denied, failed };
  Phase phase = Phase::initial;

  // fresh, refreshing
  PodCredential credential = {};
  Time begin_refresh = {};
  Time not_after = {};
  bool told_overdue = false;
  bool told_expired = false;

  // waiting, refreshing
  std::string request = {};      // the name of the PodCertificateRequest
  std::string pending_key = {};  // that it is for

  // initial, fresh: no request before this time, since the last one came to nothing
  Time retry = {};

  // denied, failed
  std::string reason = {};
  std::string message = {};

  bool is_waiting() const { return phase == Phase::waiting || phase == Phase::refreshing; }
  /// It is time to make a request.
  bool wants_request(Time now) const;
  /// When somebody has to look again, though nothing happened.
  std::optional<Time> next_look() const;
  /// Error: why there is none, as it stands in the event FailedMount.
  Result<PodCredential> get() const;
  /// In the words of the kubelet's metric: not_yet_issued, fresh, overdue_for_refresh, expired,
  /// denied, failed.
  std::string_view word(Time now) const;
};

/// A request was made.
void note_requested(CertificateState& state, std::string name, std::string key_pem);
/// The request is no longer there. Another one is made, but not at once: whoever removes them may
/// go on to.
void note_lost(CertificateState& state, Time now);
/// A request could not be made. Who has no certificate yet is asked again when the pod is tried
/// again.
void note_failure(CertificateState& state, Time now);
/// The request as it is now. `jitter` keeps certificates of many pods from being renewed at once.
std::optional<CertificateNote> note_answer(CertificateState& state, const json::Value& request,
                                           Duration jitter);
/// What there is to tell about a certificate that should have been renewed by now, each once.
std::vector<CertificateNote> note_age(CertificateState& state, Time now);

}  // namespace dibs::node
