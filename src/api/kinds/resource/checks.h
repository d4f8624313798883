#pragma once
// The checks of resource.k8s.io kinds, in their stored form. rules.cc puts them together.

#include <initializer_list>
#include <string_view>

#include "api/kinds/resource/findings.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// spec of a claim, or spec.spec of a template.
void check_claim_spec(const Value& spec, const Path& path, Findings& found);
void check_claim_status(const Value& claim, const Value& old, Findings& found);

/// Selectors of a request or class. `stored`: the list is the one that is stored already.
void check_selectors(const Value& selectors, bool stored, const Path& path, Findings& found);
/// `opaque` of a configuration entry.
void check_configuration(const Value& config, bool stored, const Path& path, Findings& found);
void check_device_tolerations(const Value& tolerations, const Path& path, Findings& found);
/// `old_effect` is null for a new taint.
void check_device_taint(const Value& taint, const Value* old_effect, const Path& path,
                        Findings& found);
void check_binding_conditions(const Value& holder, const Path& path, Findings& found);
void check_skipped_operations(const Value& operations, const Path& path, Findings& found);
/// Faults where a key is there twice; `key` names the member that tells entries apart.
void check_unique_key(const Value& list, std::string_view key, const Path& path, Findings& found,
                      bool covered);

/// `old` is the spec that is replaced, or null.
void check_slice_spec(const Value& spec, const Value* old, const Path& path, Findings& found);
/// capacity of a device that may be given out many times.
void check_request_policy(const Value& capacity, const Path& path, Findings& found);

void check_class_spec(const Value& spec, const Value* old, const Path& path, Findings& found);
void check_taint_rule_spec(const Value& spec, const Value* old, const Path& path, Findings& found);

/// The part of an object of `kind` that `steps` lead to, as the API's internal structure writes
/// itself, for messages that show it whole.
Value shown_part(const Value& part, std::string_view kind,
                 std::initializer_list<std::string_view> steps, const Features& features);
Value shown_attribute(const Value& attribute);
Value shown_terms(const Value& terms);

}  // namespace dibs::api
