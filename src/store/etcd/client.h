#pragma once
// Connections to the members of one etcd.
//
// A connection is made to one endpoint after the other, and is there only once that member has
// authenticated us, answers a linearizable read (so it has a leader and a majority), belongs to the
// cluster that was met first, and knows at least the revision that is known here. Whoever sees it
// fail drops it and connects again, to the next endpoint; files with certificates are read anew.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/remote.h"
#include "store/etcd/keys.h"
#include "store/store.h"
#include "store/stores.h"

namespace dibs::store::etcd {

/// What an answer that is no success means.
enum class Fault {
  away,        // nobody answered, or nobody who could: another member may; it may have been done
  not_sent,    // the same, and it has certainly not been done
  busy,        // the same member will, later; not done
  no_space,    // the quota is used up: only deletions; not done
  too_large,   // not done
  stale_auth,  // the token is too old: connect again; not done
  no_lease,    // the lease is over; not done
  compacted,   // the revision is gone; not done
  denied,      // the user has no right to it; not done
  refused,     // anything else: trying again does not help; not done
};
Fault fault_of(const rpc::Status& status);
/// For whoever reads an API's answer.
Error error_of(Fault fault, const rpc::Status& status);

/// One member, met and checked. Thread-safe.
class Connection {
 public:
  Connection(std::string endpoint, std::unique_ptr<rpc::Remote> remote, std::string token);

  const std::string& endpoint() const { return endpoint_; }
  /// Answers to progress requests can be trusted: from 3.4.31, 3.5.13 and 3.6.0 on.
  bool tells_progress() const { return tells_progress_; }

  void call(const std::string& method, std::string_view request, std::chrono::milliseconds deadline,
            std::function<void(rpc::Reply)> done) const;
  rpc::Reply call_and_wait(const std::string& method, std::string_view request,
                           std::chrono::milliseconds deadline) const;
  /// Ends when the member loses its leader.
  std::unique_ptr<rpc::TwoWayStream> open_watch(rpc::StreamHandlers handlers) const;

 private:
  friend class Client;
  const std::string endpoint_;
  const std::unique_ptr<rpc::Remote> remote_;
  rpc::Metadata metadata_;
  bool tells_progress_ = false;
};
using ConnectionPtr = std::shared_ptr<const Connection>;

class Client {
 public:
  Client(const EtcdOptions& options, const Keys& keys) : options_(options), keys_(keys) {}

  /// Errors: bad_request, with what is wrong about the options.
  static Result<> check(const EtcdOptions& options);

  /// Tries the next endpoint; takes some seconds at most. One caller at a time. Errors:
  /// unavailable, with the endpoint and the reason.
  Result<ConnectionPtr> connect(Revision known);
  /// All endpoints in a row refuse us for good: the certificates of either side or the user are
  /// wrong.
  bool is_hopeless() const { return refusals_ >= static_cast<int>(options_.endpoints.size()); }
  /// Whether an answer is of the cluster that was met first, and not older than what was known when
  /// it was asked for. Thread-safe.
  Result<> check(std::uint64_t cluster, Revision revision, Revision known) const;

 private:
  Result<rpc::RemoteOptions> read_files(const std::string& endpoint) const;
  Result<std::string> authenticate(rpc::Remote& remote) const;
  Result<> meet(Connection& connection, Revision known);

  const EtcdOptions options_;
  const Keys& keys_;
  std::size_t next_ = 0;
  std::atomic<int> refusals_ = 0;
  std::atomic<std::uint64_t> cluster_ = 0;  // 0: not met yet
};

}  // namespace dibs::store::etcd
