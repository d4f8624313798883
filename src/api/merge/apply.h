#pragma once
// Server-side apply, and the record of who owns what that every other write keeps.
//
// A write that is no apply takes over the fields it changes: track_update() is called with the
// object as the client would have it, defaulted, before the server's own changes (prepare_create,
// prepare_update, admission): those belong to nobody. An apply says all that a manager wants: what
// it no longer mentions and nobody else owns goes away, and a field of another manager with another
// value is a conflict unless the apply is forced. apply() merges and records; its result is raw and
// goes through decoding, defaults, admission and validation as any other object.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/merge/field_set.h"
#include "api/merge/managed_fields.h"
#include "api/schema/schema.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::api {

struct VersionedObject {
  Value object;
  const Schema* schema = nullptr;
};

/// The object in another version, with that version's schema; nothing when the version is not
/// known.
using VersionConverter = std::function<Result<std::optional<VersionedObject>>(
    const Value& object, std::string_view api_version)>;

/// Who writes, what, and through which door.
struct FieldWriter {
  const Schema* schema = nullptr;  // of the objects given
  std::string_view api_version;
  std::string_view kind;
  std::string_view manager;      // "" is recorded as "unknown"
  std::string_view subresource;  // "" for the object itself
  /// What a write through this door cannot change (status, or spec through /status): nobody gets to
  /// own it.
  const FieldSet* reset = nullptr;
  /// Objects of custom resources begin with nothing; those of built-in kinds with their zero value.
  bool custom = false;
  Time now;
  /// Managers may have written in other versions of the kind. Without a converter all versions are
  /// taken for the same.
  const VersionConverter* convert = nullptr;
};

/// The object with metadata.managedFields brought up to date. `live` is null for a new object; both
/// are in normal form. `forget`: the client wrote [] or [{}] (resets_managed_fields). An object
/// whose entries were forgotten is not tracked until it is applied to. Never fails: when the fields
/// cannot be told apart the old entries stay.
Value track_update(const FieldWriter& writer, const Value* live, Value object, bool forget = false);

struct ApplyResult {
  /// With metadata.managedFields; otherwise raw.
  Value object;
  /// False when no value changed; the entries may have.
  bool changed = true;
};

/// Lays `config` over the live object (null: there is none). Errors: bad_request for another kind
/// or managedFields in the config, plain when the config does not fit the schema, conflict with one
/// cause per field.
Result<ApplyResult> apply(const FieldWriter& writer, const Value* live, const Value& config,
                          bool force);

}  // namespace dibs::api
