#include "store/etcd/leases.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "proto/etcd.pb.h"

namespace dibs::store::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrant = 5s;
constexpr int kMostKeys = 1000;

}  // namespace

void Leases::get(const Connection& connection, std::chrono::seconds lifetime, Done done) {
  const auto now = Clock::now();
  const std::chrono::seconds shared_for =
      std::max<std::chrono::seconds>(1s, std::min<std::chrono::seconds>(60s, lifetime / 20));
  {
    MutexLock lock(mutex_);
    Shared& shared = by_lifetime_[lifetime];
    if (shared.id != 0 && now < shared.until && shared.keys < kMostKeys) {
      ++shared.keys;
      const Lease id = shared.id;
      lock.unlock();
      return done(id, {});
    }
    shared.id = 0;
    shared.waiting.push_back(std::move(done));
    if (shared.waiting.size() > 1) return;
  }
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl((lifetime + shared_for).count());
  // Counted from before the call: etcd's time begins after that.
  connection.call("/etcdserverpb.Lease/LeaseGrant", request.SerializeAsString(), kGrant,
                  [this, lifetime, until = now + shared_for](const rpc::Reply& reply) {
                    granted(lifetime, reply, until);
                  });
}

void Leases::granted(std::chrono::seconds lifetime, const rpc::Reply& reply,
                     Clock::time_point until) {
  etcdserverpb::LeaseGrantResponse answer;
  rpc::Status status = reply.status;
  if (status.ok() && (!answer.ParseFromString(reply.bytes) || answer.id() == 0)) {
    status = {rpc::Code::unavailable, cat("no lease: ", answer.error())};
  }
  std::vector<Done> waiting;
  {
    const MutexLock lock(mutex_);
    Shared& shared = by_lifetime_[lifetime];
    waiting.swap(shared.waiting);
    if (status.ok()) {
      shared.id = answer.id();
      shared.until = until;
      shared.keys = static_cast<int>(waiting.size());
    }
  }
  for (const Done& done : waiting) {
    if (status.ok()) {
      done(Lease{answer.id()}, status);
    } else {
      done(error_of(fault_of(status), status), status);
    }
  }
}

void Leases::forget(Lease lease) {
  const MutexLock lock(mutex_);
  for (auto& [lifetime, shared] : by_lifetime_) {
    if (shared.id == lease) shared.id = 0;
  }
}

}  // namespace dibs::store::etcd
