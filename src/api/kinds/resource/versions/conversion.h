#pragma once
// Between the versions of resource.k8s.io and the form that is stored.
//
// The stored form is v1, or v1alpha2 for an object of the classic model (model.h); its apiVersion
// says which. Every version shows every object, as far as it has words for it. What a version
// cannot show survives a write through it: store() is given the object as it was and puts the
// hidden parts back. Pure functions of values; objects are in normal form on both sides.

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

using json::Value;

/// The shape of an object in a version.
enum class ResourceForm : char {
  same,      // v1, v1beta2, and kinds that look the same in all versions
  flat,      // v1beta1: requests are flat, devices have a basic part
  quantity,  // v1alpha3 of 1.31 to 1.33: as flat, capacities are plain quantities
  classic,   // v1alpha2
};

class Conversion {
 public:
  /// `release` is the minor number of the release that is emulated, 0 for none: it decides which
  /// fields a version knows.
  Conversion(std::string_view kind, std::string_view version, int release = 0);

  /// A stored object as this version shows it.
  Value show(const Value& stored) const;
  /// An object of this version as it is to be stored, over `existing` (null for a new one).
  /// `status_write`: it came through /status, so the rest of it does not count. Errors: invalid,
  /// when it would change a part of another model that this version cannot show.
  Result<Value> store(const Value& served, const Value* existing, bool status_write = false) const;

  /// Objects that are stored with this apiVersion are shown as they are; "" when none is.
  std::string_view shown_as_stored() const { return shown_as_stored_; }

 private:
  Value to_own_model(const Value& served) const;
  Value from_own_model(const Value& stored) const;

  std::string kind_;
  std::string api_version_;
  ResourceForm form_;
  bool two_models_;
  std::string shown_as_stored_;
  // Of an older release: the fields that it knows, and the stored form with all.
  const Schema* served_schema_ = nullptr;
  const Schema* stored_schema_ = nullptr;
};

}  // namespace dibs::api
