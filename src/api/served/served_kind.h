#pragma once
// One version of a built-in kind as a server of some release serves it.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/schema/catalog.h"
#include "api/schema/features.h"
#include "api/schema/kind.h"
#include "base/result.h"

namespace dibs::api {

struct ServedKind {
  /// Never null.
  std::shared_ptr<const KindRules> rules;
  /// The Warning of this version, or "".
  std::string deprecation;
  /// Between this version and the stored one; empty where they are the same. `existing` is the
  /// object as it is stored, null for a new one: it keeps what this version cannot show.
  /// `status_write`: the object came through /status.
  std::function<Result<Value>(const Value& object, const Value* existing, bool status_write)>
      to_storage;
  std::function<Value(const Value& stored)> from_storage;
  /// Objects that are stored with this apiVersion are shown as they are; "" when none is.
  std::string shown_as_stored;
  /// Objects of two models live under the resource's name, each stored in a form of its own.
  bool two_models = false;
};

ServedKind served_kind(const ResourceInfo& info, const Features& features);

/// False for kinds whose gate is off.
bool can_be_served(const ResourceInfo& info, const Features& features);

/// False for versions that have to be asked for.
bool is_served_by_default(const ResourceInfo& info);

/// True for what can be served only where nodes are measured.
bool is_measured(const ResourceInfo& info);

/// True for a group whose versions stay when the release that ended them is not emulated.
bool keeps_ended_versions(std::string_view group);

}  // namespace dibs::api
