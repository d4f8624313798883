#pragma once
// The rules of PodGroup, CompositePodGroup and Workload (scheduling.k8s.io): most are declared in
// their schema; here is what spans fields, what gates take out, and the form of v1alpha2 (release
// 1.36).
//
// Objects are stored and judged in the form of v1beta1, which v1alpha3 has, too;
// CompositePodGroups, which v1alpha3 alone has, in that. Whether groups make a tree is nothing that
// one of them could be refused for: they come in any order, so who schedules them tells.

#include <string_view>

#include "api/schema/features.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// True for the kinds of this file.
bool is_group_kind(std::string_view group, std::string_view kind);
/// The gate that a kind of this file is served with.
std::string_view group_gate(std::string_view kind);
KindRules make_group_rules(std::string_view kind, const Features& features);

/// Between v1alpha2 and the stored form; other versions differ in apiVersion alone.
Value group_to_stored(std::string_view kind, const Value& object);
Value group_from_stored(std::string_view kind, std::string_view version, const Value& stored);

}  // namespace dibs::api
