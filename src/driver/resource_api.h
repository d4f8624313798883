#pragma once
// resource.k8s.io as a driver speaks it: version 1 whatever the server serves.
//
// The first call finds out the newest version that the server has (v1, v1beta2, v1beta1), and it
// stays with that one. Objects go in and come out as v1: a slice of v1beta1 keeps a device's fields
// one level deeper; what a driver reads of a claim is the same in all of them.
//
// Thread-safe.

#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"

namespace dibs::driver {

class ResourceApi {
 public:
  /// `client` must outlive it.
  explicit ResourceApi(client::Client& client) : client_(client) {}

  /// "v1". Errors: not_found when the server has none of them.
  Result<std::string> version();
  Result<client::Gvr> slices() { return resource("resourceslices"); }

  Result<json::Value> get_claim(std::string_view name_space, std::string_view name);
  /// The claim as get_claim() gave it, with another status.
  Result<json::Value> update_claim_status(const json::Value& claim);

  Result<json::Value> create_slice(const json::Value& slice);
  Result<json::Value> update_slice(const json::Value& slice);
  /// Only this very state of it. Success too when it is gone.
  Result<> remove_slice(const json::Value& slice);

  /// Creates the class, or finds it there.
  Result<> ensure_class(std::string_view name, const json::Value& spec);

  client::Client& client() { return client_; }

 private:
  Result<client::Gvr> resource(std::string_view plural);

  client::Client& client_;
  std::mutex mutex_;
  std::string version_;  // guarded by mutex_; "" until found out
};

/// A slice of any served version in v1's form, and back.
json::Value slice_to_v1(const json::Value& slice);
json::Value slice_from_v1(const json::Value& slice, std::string_view version);

}  // namespace dibs::driver
