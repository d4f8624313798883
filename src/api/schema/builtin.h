#pragma once
// The built-in kinds, read from the texts under schema/ that are compiled into the binary.
//
// All functions are thread-safe; the first call reads the texts (a few milliseconds). What they
// return lives as long as the process.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/catalog.h"
#include "base/result.h"

namespace dibs::api {

/// Everything known, all versions; a server leaves out what it does not serve. With a release's
/// minor number: resources and fields as that release has them; 0 is the newest release, with the
/// fields of older ones that are still taken.
const Catalog& builtin_catalog(int release = 0);

/// The schema of a kind, also of those that are bodies only (DeleteOptions, Status, Scale,
/// Eviction, TokenRequest, lists). Kinds of meta/v1 are found in every group-version. Null when
/// unknown.
const Schema* builtin_schema(std::string_view group, std::string_view version,
                             std::string_view kind, int release = 0);

/// By package and name: "meta/v1.ObjectMeta", "core/v1.PodSpec". Null when unknown.
const Schema* builtin_type(std::string_view name);

/// The group, version and kind of a schema, or null when it is no kind. Kinds of meta/v1 are given
/// as core's.
const GroupVersionKind* builtin_kind(const Schema& schema);

/// A digest of all schema texts, for hashes of what is made from them.
const std::string& builtin_digest();

/// The words of ours about a type or field: ("io.k8s.api.core.v1.PodSpec", "containers"); field ""
/// is the type. "" when there are none.
std::string_view description(std::string_view full_name, std::string_view field);

}  // namespace dibs::api
