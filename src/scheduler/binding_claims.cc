// The writes of one claim: made, allocated, reserved, each repeated until the server has said what
// became of it.
#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "scheduler/binding_run.h"
#include "scheduler/negotiation.h"

namespace dibs::scheduler {
namespace {

using client::PatchType;
using json::Value;

constexpr int kConflicts = 5;

Value consumer(const Pod& pod) {
  return Value::object({{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}});
}

/// Of a claim that the scheduler has allocated.
std::string_view finalizer_of(const Value& claim) {
  return api::is_classic(claim) ? kNamedClaimFinalizer : kClaimFinalizer;
}

Value consumer(const Pod& pod, const ClaimWrite& write) {
  return write.consumer.is_null() ? consumer(pod) : write.consumer;
}

void add_consumer(Value& claim, const Value& user) {
  Value& reserved = claim.mut("status").mut("reservedFor");
  if (!reserved.is_array()) reserved = Value::array();
  reserved.push(user);
}

bool has_finalizer(const Value& claim) {
  for (const Value& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() == finalizer_of(claim)) return true;
  }
  return false;
}

/// Compares what was given to whom. The rest may come back changed: an older server drops the
/// fields that it does not know.
bool same_devices(const Value& claim, const Value& one, const Value& other) {
  if (api::is_classic(claim)) {
    return one["availableOnNodes"] == other["availableOnNodes"] && same_instances(one, other);
  }
  const Value& a = one["devices"]["results"];
  const Value& b = other["devices"]["results"];
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const char* key : {"request", "driver", "pool", "device", "shareID"}) {
      if (!(a[i][key] == b[i][key])) return false;
    }
  }
  return true;
}

}  // namespace

void Binder::write_claim(const std::shared_ptr<Run>& run, std::size_t index) {
  const ClaimWrite& write = run->job.claims[index];
  if (write.key.empty()) return create_claim(run, index);
  const Value claim = devices_.claim(write.key);
  const Value user = consumer(*run->job.pod, write);
  if (is_reserved_for(claim, user["uid"].as_string())) {
    // Another scheduler may have decided about the same pod, for another node.
    if (!write.allocation.is_null() &&
        !same_devices(claim, claim["status"]["allocation"], write.allocation)) {
      run->failure = cat(kPreBind, "claim ", write.key, " got allocated elsewhere in the meantime");
    }
    return claim_done(run);
  }
  if (!write.allocation.is_null()) return allocate_claim(run, index);
  // Another pod of the group is writing its allocation.
  if (const std::shared_ptr<Together> together = run->job.together;
      together != nullptr && !claim["status"]["allocation"].is_object() &&
      together->allocating.contains(write.key) && together->failure.empty()) {
    together->postponed.emplace_back([this, run, index] {
      --run->postponed;
      go_on(*run);
      write_claim(run, index);
    });
    if (++run->postponed == run->open) rest(*run);
    return;
  }
  reserve_claim(run, index);
}

void Binder::create_claim(const std::shared_ptr<Run>& run, std::size_t index) {
  const ClaimWrite& write = run->job.claims[index];
  call(client::create_request(kClaims, run->job.pod->name_space, write.create),
       [this, run, index](const Result<Value>& answer) {
         if (metrics_ != nullptr)
           metrics_->claims_created.count(run->job.claims[index].create, answer.ok());
         if (!answer.ok()) {
           // A claim that was made after all is found by its owner and removed by the next attempt.
           run->failure =
               cat(kPreBind, "create extended resource claim: ", answer.error().message());
           return claim_done(run);
         }
         ClaimWrite& created = run->job.claims[index];
         created.key = client::key_of(*answer);
         devices_.unreserve(created.flight);
         created.flight = created.key;
         devices_.reserve(created.key, created.allocation);
         devices_.put_claim(*answer);
         write_claim(run, index);
       });
}

void Binder::allocate_claim(const std::shared_ptr<Run>& run, std::size_t index) {
  const ClaimWrite& write = run->job.claims[index];
  const auto [name_space, name] = client::split_key(write.key);
  Value claim = devices_.claim(write.key);
  const auto stop = [&](std::string_view what) {
    run->failure = cat(kPreBind, "claim ", write.key, " got ", what, " in the meantime");
    claim_done(run);
  };
  if (claim.is_null() || claim["metadata"]["deletionTimestamp"].is_string()) return stop("deleted");
  if (claim["status"]["allocation"].is_object()) return stop("allocated elsewhere");
  client::WriteOptions options = status_write();
  const bool protect = !has_finalizer(claim);
  const bool in_one_write = client_.transport().protects_allocations();
  if (protect && !in_one_write) {
    options.subresource.clear();
    Value& metadata = claim.mut("metadata");
    Value& finalizers = metadata.mut("finalizers");
    if (!finalizers.is_array()) finalizers = Value::array();
    finalizers.push(finalizer_of(claim));
  } else {
    Value& status = claim.mut("status");
    status.set("allocation", write.allocation);
    if (api::is_classic(claim)) {
      status.set("driverName", write.driver);
    } else {
      status.mut("allocation").set("allocationTimestamp", format_rfc3339(runtime_.clock.now()));
    }
    add_consumer(claim, consumer(*run->job.pod, write));
  }
  client::Request request = client::update_request(claims_of(claim), name_space, claim, options);
  request.protects_allocation = protect && in_one_write;
  call(std::move(request), [this, run, index](const Result<Value>& answer) {
    if (!answer.ok()) return look_again(run, index, answer.error());
    run->wrote[index] = true;
    devices_.put_claim(*answer);
    write_claim(run, index);
  });
}

void Binder::reserve_claim(const std::shared_ptr<Run>& run, std::size_t index) {
  const ClaimWrite& write = run->job.claims[index];
  const auto [name_space, name] = client::split_key(write.key);
  const Value claim = devices_.claim(write.key);
  if (!claim["status"]["allocation"].is_object()) {
    run->failure = cat(kPreBind, "claim ", write.key, " got deallocated elsewhere in the meantime");
    return claim_done(run);
  }
  const Value based_on = claim["status"]["allocation"];
  const auto then = [this, run, index, based_on](const Result<Value>& answer) {
    if (!answer.ok()) return look_again(run, index, answer.error());
    run->wrote[index] = true;
    devices_.put_claim(*answer);
    // Freed and given out again in between: maybe for another node.
    if (!same_devices(*answer, (*answer)["status"]["allocation"], based_on)) {
      run->failure = cat(kPreBind, "claim ", run->job.claims[index].key,
                         " got allocated elsewhere in the meantime");
    }
    claim_done(run);
  };
  if (is_early(release_)) {
    // The users of a claim stand there in the order in which they came.
    Value reserved = claim;
    add_consumer(reserved, consumer(*run->job.pod, write));
    return call(client::update_request(claims_of(claim), name_space, reserved, status_write()),
                then);
  }
  const Value user = consumer(*run->job.pod, write);
  Value status = Value::object({{"reservedFor", Value::array({user})}});
  // Users stand there in the order in which they came; but of 1.28 to 1.30 the new one is first.
  const Value& users = claim["status"]["reservedFor"];
  if (!users.empty() && !is_classic_release(release_)) {
    status.set("$setElementOrder/reservedFor",
               Value::array({Value::object({{"uid", users[users.size() - 1]["uid"]}}),
                             Value::object({{"uid", user["uid"]}})}));
  }
  const Value patch =
      Value::object({{"metadata", Value::object({{"uid", claim["metadata"]["uid"]}})},
                     {"status", std::move(status)}});
  call(client::patch_request(claims_of(claim), name_space, name, PatchType::strategic, patch,
                             status_write()),
       then);
}

void Binder::look_again(const std::shared_ptr<Run>& run, std::size_t index, const Error& error) {
  const std::string key = run->job.claims[index].key;
  const bool unknown = is_unknown(error);
  if (unknown) run->wrote[index] = true;
  if (!unknown && (error.code() != Code::conflict || ++run->tries[index] >= kConflicts)) {
    run->failure =
        cat(kPreBind, "add ", run->job.claims[index].allocation.is_null() ? "" : "allocation and ",
            "reservation to claim ", key, ": ", error.message());
  }
  const auto [name_space, name] = client::split_key(key);
  const auto read = [this, run, index, name_space = name_space, name = name] {
    call(client::make_request("GET", client::path_of(kClaims, name_space, name)),
         [this, run, index](const Result<Value>& answer) {
           if (!answer.ok() && is_unknown(answer.error())) {
             return look_again(run, index, answer.error());
           }
           if (!answer.ok()) {
             if (run->failure.empty()) run->failure = cat(kPreBind, answer.error().message());
             return claim_done(run);
           }
           devices_.put_claim(*answer);
           if (!run->failure.empty()) return claim_done(run);
           write_claim(run, index);
         });
  };
  if (unknown) {
    later(kLookAgain, read);
  } else {
    read();
  }
}

}  // namespace dibs::scheduler
