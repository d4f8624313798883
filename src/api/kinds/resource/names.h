#pragma once
// Names that resource.k8s.io demands of drivers, pools, attributes and shares.
//
// The checks of old speak here. The rules that releases from 1.37 on declare beside the fields say
// the same in other words: kinds/declared_formats.cc.

#include <string_view>

#include "api/kinds/names.h"

namespace dibs::api {

/// A sub-domain of up to 63 bytes, in any case.
void check_driver_name(std::string_view name, const Path& path, FieldErrors& errors);
/// Sub-domains joined by "/", 253 bytes at most.
void check_pool_name(std::string_view name, const Path& path, FieldErrors& errors);
/// "identifier" or "domain/identifier": a key of attributes and capacities.
void check_qualified_name(std::string_view name, const Path& path, FieldErrors& errors);
void check_fully_qualified_name(std::string_view name, const Path& path, FieldErrors& errors);
bool is_lower_uuid(std::string_view text);
void check_uuid(std::string_view text, const Path& path, FieldErrors& errors);
void check_node_name(std::string_view name, const Path& path, FieldErrors& errors);
void check_label_name(const Value& name, const Path& path, FieldErrors& errors);
/// A version of semver.org 2.0.0 within the length of an attribute's value.
void check_version_value(const Value& version, const Path& path, FieldErrors& errors);
/// "10.9.8.7/24", in the form that it would be written in.
void check_interface_address(const Value& address, const Path& path, FieldErrors& errors);

/// A key as paths show it: what is longer than `limit` loses its middle.
std::string shortened_key(std::string_view key, std::size_t limit);

}  // namespace dibs::api
