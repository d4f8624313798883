#pragma once
// Reading and writing objects: the rules of the API around one store transaction.
//
// Life of a write: 1. the caller decodes the body (body.h) to the served version in normal form;
// 2. it is converted to the stored version; 3. managedFields; 4. mutating admission; 5. the kind
// prepares it and the common metadata is set; 6. validation, of metadata and of the kind;
// 7. validating admission; 8. one commit that expects the revision it was made from. On a lost race
// an update starts over.
//
// Thread-safe; commit() blocks until the write is durable.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/admission.h"
#include "server/context.h"
#include "store/store.h"

namespace dibs::server {

/// An object in the stored version, with its resourceVersion.
struct Written {
  Value object;
  bool created = false;
  bool removed = false;  // the write took the last finalizer away
};

struct DeleteOptions {
  std::optional<std::int64_t> grace_seconds;
  std::string propagation;  // "", Foreground, Background, Orphan
  std::optional<bool> orphan_dependents;
  std::string precondition_uid;
  std::string precondition_version;
  bool dry_run = false;
  Value raw;
};

struct Deleted {
  Value object;          // as it was last, or as it waits
  bool removed = false;  // gone from the store
};

enum class UpdateKind : char { put, patch, apply };

class Objects {
 public:
  Objects(runtime::Runtime& runtime, store::Store& store, const AdmissionChain& admission)
      : runtime_(runtime), store_(store), admission_(admission) {}

  /// Errors: not_found.
  Result<Value> get(const Resource& resource, std::string_view name_space,
                    std::string_view name) const;

  /// `object` is in the stored version, decoded and with defaults.
  Result<Value> create(Context& context, const Resource& resource, std::string_view name_space,
                       Value object);

  /// `make` gives the wanted object (stored version, decoded, with defaults) from the existing one,
  /// null where there is none; it is called again after a lost race. `may_create`: a missing object
  /// is created from what `make` gives.
  using Make = std::function<Result<Value>(const Value* existing)>;
  Result<Written> update(Context& context, const Resource& resource, std::string_view name_space,
                         std::string_view name, UpdateKind kind, bool may_create, const Make& make);

  Result<Deleted> remove(Context& context, const Resource& resource, std::string_view name_space,
                         std::string_view name, const DeleteOptions& options);

  const AdmissionChain& admission() const { return admission_; }
  store::Store& store() { return store_; }
  runtime::Runtime& runtime() { return runtime_; }

 private:
  using AdmissionPtr = std::shared_ptr<AdmissionRequest>;
  Result<Value> commit_new(Context& context, const Resource& resource, const AdmissionPtr& held,
                           Value object);
  /// Leaves the write to whoever serves the request.
  void defer(Context& context, const AdmissionPtr& held, store::Op op, Value object,
             const Value* old) const;
  Result<Value> prepare_update(Context& context, const Resource& resource,
                               AdmissionRequest& admission, Value object, const Value& old);

  runtime::Runtime& runtime_;
  store::Store& store_;
  const AdmissionChain& admission_;
};

}  // namespace dibs::server
