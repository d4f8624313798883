#include "drivers/net/ipam/garbage.h"

#include <algorithm>

#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

constexpr int kTries = 5;
// Listing all endpoints takes a twentieth of the time at most.
constexpr int kListShare = 20;
constexpr Duration kListPause = std::chrono::milliseconds(200);

void sooner(std::optional<Duration>& again, Duration delay) {
  again = again ? std::min(*again, delay) : delay;
}

}  // namespace

void Garbage::endpoint_changed(const Value* before, const Value* after) {
  const auto was = before != nullptr ? held_by(parse_endpoint(*before).nics) : std::vector<Held>();
  const auto is = after != nullptr ? held_by(parse_endpoint(*after).nics) : std::vector<Held>();
  std::vector<std::string> looked;
  {
    const MutexLock lock(mutex_);
    for (const auto& held : was) {
      if (std::find(is.begin(), is.end(), held) != is.end()) continue;
      named_[held.pool].remove(held.ip);
      looked.push_back(held.pool);
    }
    for (const auto& held : is) named_[held.pool].add(held.ip);
  }
  for (const auto& pool : looked) shared_.look_at_records(pool);
}

WorkOutcome Garbage::look_at_endpoint(const std::string& key) {
  const auto object = shared_.endpoints.get(key);
  if (!object) return WorkOutcome::done();
  const Endpoint endpoint = parse_endpoint(*object);
  const auto pod = shared_.pods.get(key);
  const auto left = time_left(endpoint, pod ? *pod : Value());
  if (!left) return outcome_of(left.error(), key);
  if (!*left) return WorkOutcome::done();
  if (**left > Duration(0)) return WorkOutcome::again_after(**left);
  return outcome_of(free_endpoint(key), key);
}

Result<std::optional<Duration>> Garbage::time_left(const Endpoint& endpoint, const Value& pod) {
  const bool same = pod.is_object() && client::uid_of(pod) == endpoint.pod_uid;
  if (same && (!has_ended(pod) || pod["spec"]["hostNetwork"].as_bool())) {
    return std::optional<Duration>();
  }
  DIBS_TRY(const bool kept, is_kept_by_set(endpoint));
  if (kept) return std::optional<Duration>();
  if (!same) return std::optional(Duration(0));
  const Duration left = end_of_use(pod, shared_.options.delay) - shared_.runtime.clock.now();
  return std::optional(std::max(left, Duration(0)));
}

Result<bool> Garbage::is_kept_by_set(const Endpoint& endpoint) {
  if (!shared_.options.stateful_sets || endpoint.owner_kind != "StatefulSet") return false;
  DIBS_TRY(const Value set, find_object(shared_.api, kStatefulSetResource, endpoint.name_space,
                                        endpoint.owner_name));
  return keeps_addresses(endpoint.name, set);
}

/// What the informers know may be old: the server has the last word.
Result<> Garbage::free_endpoint(const std::string& key) {
  const auto [name_space, name] = client::split_key(key);
  DIBS_TRY(const Endpoint endpoint, endpoints_.read(name_space, name));
  if (!endpoint.object.is_object()) return success();
  DIBS_TRY(const Value pod, find_object(shared_.api, kPodResource, name_space, name));
  DIBS_TRY(const auto left, time_left(endpoint, pod));
  if (!left || *left > Duration(0)) return success();
  DIBS_TRY(const bool removed, endpoints_.remove(endpoint));
  if (!removed) return Error::conflict("changed meanwhile");
  for (const auto& held : held_by(endpoint.nics)) shared_.look_at_records(held.pool);
  return success();
}

WorkOutcome Garbage::look_at_records(const std::string& pool) {
  for (int i = 0; i < kTries; ++i) {
    std::optional<Duration> again;
    const auto cleaned = clean(pool, again);
    if (!cleaned) return outcome_of(cleaned.error(), pool);
    if (!*cleaned) continue;
    return again ? WorkOutcome::again_after(*again) : WorkOutcome::done();
  }
  return WorkOutcome::retry();
}

/// The pool is read first and written at that version last: what is between decides.
Result<bool> Garbage::clean(const std::string& pool, std::optional<Duration>& again) {
  DIBS_TRY(Value object, find_object(shared_.api, kIpPools, "", pool));
  if (!object.is_object()) return true;
  PoolRecords records(std::move(object), IpSet());
  if (!records.readable()) return true;
  bool changed = false;
  const auto all = records.status().allocated;
  for (const auto& [ip, record] : all) {
    const Held held{pool, ip};
    bool same_uid = true;
    if (names(held, record, &same_uid)) {
      const auto endpoint = shared_.endpoints.get(record.pod);
      if (same_uid || !endpoint) continue;
      changed = records.rename(ip, parse_endpoint(*endpoint).pod_uid) || changed;
      continue;
    }
    DIBS_TRY(const Verdict verdict, judge_record(held, record, again));
    if (verdict == Verdict::again) return false;
    if (verdict == Verdict::drop) changed = records.drop(ip, record) || changed;
  }
  if (records.status().allocated.size() > shared_.options.records) {
    changed = records.settle([&](const Ip& ip, const PoolRecord& record) {
      return names({pool, ip}, record, nullptr);
    }) > 0 || changed;
  }
  DIBS_TRY(const IpSet free, unnamed(pool, records.status().settled, again));
  if (!free.empty()) {
    records.drop_settled(free);
    changed = true;
  }
  forget(pool, all);
  if (!changed) return true;
  auto written = shared_.api.update_status(kIpPools, "", records.to_object());
  if (written || written.error().code() == Code::not_found) return true;
  if (written.error().code() == Code::conflict) return false;
  return written.error();
}

/// Records that have gone by themselves.
void Garbage::forget(const std::string& pool, const std::map<Ip, PoolRecord>& present) {
  auto at = first_seen_.lower_bound({pool, Ip{}, "", 0});
  while (at != first_seen_.end() && std::get<0>(at->first) == pool) {
    const auto found = present.find(std::get<1>(at->first));
    const bool there = found != present.end() && found->second.uid == std::get<2>(at->first) &&
                       found->second.taken_up == std::get<3>(at->first);
    at = there ? std::next(at) : first_seen_.erase(at);
  }
}

bool Garbage::names(const Held& held, const PoolRecord& record, bool* same_uid) {
  const auto object = shared_.endpoints.get(record.pod);
  if (!object) return false;
  const Endpoint endpoint = parse_endpoint(*object);
  if (same_uid != nullptr) *same_uid = endpoint.pod_uid == record.uid;
  const auto all = held_by(endpoint.nics);
  return std::find(all.begin(), all.end(), held) != all.end();
}

Result<Garbage::Verdict> Garbage::judge_record(const Held& held, const PoolRecord& record,
                                               std::optional<Duration>& again) {
  const RecordKey key{held.pool, held.ip, record.uid, record.taken_up};
  DIBS_TRY(const bool live, is_live(record));
  if (live) {
    // Somebody is at work on it, or was killed and will be asked again.
    const Duration now = shared_.runtime.clock.steady();
    const Duration left =
        first_seen_.emplace(key, now).first->second + shared_.options.record_patience - now;
    if (left > Duration(0)) {
      sooner(again, left);
      return Verdict::later;
    }
  }
  DIBS_TRY(const Verdict verdict, fence(held, record));
  if (verdict != Verdict::again) first_seen_.erase(key);
  return verdict;
}

Result<bool> Garbage::is_live(const PoolRecord& record) {
  const auto known = shared_.pods.get(record.pod);
  if (known && client::uid_of(*known) == record.uid && !has_ended(*known)) return true;
  const auto [name_space, name] = client::split_key(record.pod);
  DIBS_TRY(const Value pod, find_object(shared_.api, kPodResource, name_space, name));
  return client::uid_of(pod) == record.uid && !has_ended(pod);
}

/// After this nobody who relied on the record can write its address into the endpoint.
Result<Garbage::Verdict> Garbage::fence(const Held& held, const PoolRecord& record) {
  const auto [name_space, name] = client::split_key(record.pod);
  DIBS_TRY(const Endpoint endpoint, endpoints_.read(name_space, name));
  if (!endpoint.object.is_object()) return Verdict::drop;
  const auto all = held_by(endpoint.nics);
  if (std::find(all.begin(), all.end(), held) != all.end()) return Verdict::keep;
  // Written anew since: the attempt that made the record knows an older version.
  if (endpoint.pod_uid != record.uid) return Verdict::drop;
  const std::string mark = cat(format_rfc3339_micro(shared_.runtime.clock.now()), "-", ++fences_);
  DIBS_TRY(const bool done,
           endpoint.nics.empty() ? endpoints_.remove(endpoint) : endpoints_.fence(endpoint, mark));
  return done ? Verdict::drop : Verdict::again;
}

/// Settled addresses that no endpoint names. Asked of the server, after the pool was read: what
/// settled has had its endpoint before.
Result<IpSet> Garbage::unnamed(const std::string& pool, const IpSet& settled,
                               std::optional<Duration>& again) {
  IpSet left = settled;
  {
    const MutexLock lock(mutex_);
    const auto found = named_.find(pool);
    if (found != named_.end()) left = settled.minus(found->second);
  }
  if (left.empty()) return left;
  const Duration begun = shared_.runtime.clock.steady();
  if (begun < next_list_) {
    sooner(again, next_list_ - begun);
    return IpSet();
  }
  DIBS_TRY(const auto all, shared_.api.list(kEndpoints, ""));
  for (const auto& object : all.items) {
    for (const auto& held : held_by(parse_endpoint(object).nics)) {
      if (held.pool == pool) left.remove(held.ip);
    }
  }
  const Duration ended = shared_.runtime.clock.steady();
  next_list_ = ended + std::max<Duration>((ended - begun) * kListShare, kListPause);
  return left;
}

}  // namespace dibs::drivers::net
