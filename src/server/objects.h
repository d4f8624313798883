#pragma once
// Objects in the store: reading one, and taking a write through its steps (write.h).
//
// Thread-safe; run() blocks until the write is durable.

#include <functional>
#include <string_view>

#include "api/schema/kind.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/admission.h"
#include "server/context.h"
#include "server/write.h"
#include "store/store.h"

namespace dibs::server {

class Objects {
 public:
  Objects(runtime::Runtime& runtime, store::Store& store, const AdmissionChain& admission)
      : runtime_(runtime), store_(store), shared_(store.shared()), admission_(admission) {}

  /// Errors: not_found.
  Result<Value> get(const Resource& resource, std::string_view name_space,
                    std::string_view name) const;

  /// All steps of a write, waiting for the disk. Errors: of whoever refuses it.
  Result<> run(Write& write);

  /// Steps 1 to 8. Then write.op is to be charged for and committed, and the result given to
  /// settle(), or there is none and the write is over.
  Result<> prepare(Write& write) const;
  /// What prepare() came to may be told. False: the memory may be older than the request, and all
  /// begins again when it is not (context.fresh).
  bool is_final(const Write& write, const Result<>& prepared) const;
  /// Step 9. False: not yet (AdmissionPlugin::charge); the write may be somebody else's already.
  Result<bool> charge(Write& write, const std::function<void()>& go_on) const;
  /// Step 11. False: somebody was faster, all begins again with prepare().
  Result<bool> settle(Write& write, const Result<store::Revision>& revision) const;

  const AdmissionChain& admission() const { return admission_; }
  store::Store& store() { return store_; }
  runtime::Runtime& runtime() { return runtime_; }

 private:
  Result<> steps_of(Write& write) const;
  // creation.cc
  Result<> create(Write& write) const;
  void fill_in(Write& write, bool generates_name) const;
  Result<> judge_new(Write& write, const Value& as_sent) const;
  // updating.cc
  Result<> update(Write& write) const;
  Result<> judge_update(Write& write) const;
  // deletion.cc
  Result<> remove(Write& write) const;

  runtime::Runtime& runtime_;
  store::Store& store_;
  const bool shared_;
  const AdmissionChain& admission_;
};

/// Whether the object is the one that the write's `removal` means. Errors: conflict.
Result<> check_removal(const Write& write, const Value& object);
/// Step 1: what is there, in the version that is written in. Errors: of a conversion webhook.
Result<> read_old(Write& write, const store::Record& record);
/// What rules are told of the world of a write.
api::RuleContext rule_context(const Write& write);
/// The minor number of the release that is answered as.
int release_of(const Resource& resource);
/// Errors: bad_request, where the object names another namespace than the request.
Error wrong_namespace_error();

}  // namespace dibs::server
