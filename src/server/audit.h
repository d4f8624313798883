#pragma once
// Who asked for what, and how it was answered: the audit log, as kube-apiserver writes it.
//
// Life of an entry: begun when the sender is made out (or is not), told at the stages that the
// policy wants: the request received, a long answer started, the answer complete. Each is a line of
// audit.k8s.io/v1 (audit_log.h). Nothing of a request waits for that.
//
// Thread-safe; an entry is used by one thread after the other, as its request is.

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/audit_log.h"
#include "server/audit_policy.h"
#include "server/context.h"

namespace dibs::server {

struct Options;
class Auditor;

/// What is told of one request.
class AuditEntry {
 public:
  AuditEntry(Auditor& auditor, AuditChoice choice, const Context& context,
             const auth::UserInfo* user);
  /// The answer is complete when it was begun and nobody holds it any more.
  ~AuditEntry();

  const std::string& id() const { return id_; }
  /// The request goes on after its answer has begun: audited() tells its end.
  bool is_long() const { return is_long_; }
  /// Of one event, with the bodies in it; a longer one goes without them, and says so.
  static constexpr std::size_t kMostBytes = std::size_t{10} << 20;

  /// The whole answer is to be told, too.
  bool wants_body() const { return choice_.level == AuditLevel::request_response; }
  /// What was sent is to be told, too.
  bool wants_request() const { return choice_.level >= AuditLevel::request; }
  /// Before answered(), of an answer that is known to be too long.
  void leave_out_bodies();
  void received() { tell(AuditStage::request_received); }
  void impersonates(const auth::UserInfo& user);
  /// The first value of a key counts.
  void annotate(std::string_view key, std::string_view value);
  /// Long answers are told when they start, too. Once.
  void answered(const Context& context, const Response& response);
  /// An answer that goes on: what holds the entry tells its end.
  void started(const Context& context, int status);
  /// The request of somebody who could not be made out.
  void not_known(const Context& context, const Response& response);

 private:
  void tell(AuditStage stage);
  void take_request(const Context& context);
  void set_status(const Response& response);
  std::string line(AuditStage stage) const;

  Auditor& auditor_;
  const AuditChoice choice_;
  const bool is_long_;
  std::string id_;
  Value event_;
  bool truncated_ = false;  // bodies are left out
  bool open_ = false;       // started, and not complete
};

using AuditEntryPtr = std::shared_ptr<AuditEntry>;

/// Whether the options about auditing go together. Errors name the flag.
Result<> check_audit_options(const Options& options);

class Auditor {
 public:
  /// Null where nothing is to be audited. Errors name the flag.
  static Result<std::unique_ptr<Auditor>> open(const Options& options, runtime::Runtime& runtime,
                                               metrics::Registry& metrics);

  /// Null when the policy wants nothing told. `user` null: the sender could not be made out.
  AuditEntryPtr begin(const Context& context, const auth::UserInfo* user);

 private:
  friend class AuditEntry;
  Auditor(AuditPolicy policy, std::unique_ptr<AuditLog> log, runtime::Runtime& runtime,
          metrics::Registry& metrics);

  const AuditPolicy policy_;
  runtime::Runtime& runtime_;
  metrics::CounterFamily events_;
  std::unique_ptr<AuditLog> log_;
};

/// The exchange of a long request, which tells the entry how it is answered and when that ends.
std::shared_ptr<calls::Exchange> audited(std::shared_ptr<calls::Exchange> exchange,
                                         std::shared_ptr<Context> context);

}  // namespace dibs::server
