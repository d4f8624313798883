#pragma once
// What the rules of workloads with a pod template have in common. For workload*.cc and job.cc only.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api::workload {

inline constexpr std::string_view kMoreThanReplicas = "cannot be greater than status.replicas";

/// Rules with status and generation, otherwise empty.
KindRules workload_rules();

/// The selector must be there and select something. False when there is none.
bool check_selector(const Value& spec, const Path& spec_path, std::string_view kind,
                    FieldErrors& errors);
/// The labels of the template must be selected.
/// It selects something, or nothing at all: no fault in it.
bool selector_parses(const Value& selector);
/// Of a selector that parses.
void check_selector_fits(const Value& spec, const Path& spec_path, FieldErrors& errors);
/// restartPolicy Always, no activeDeadlineSeconds.
void check_restarts_always(const Value& spec, const Path& spec_path, std::string_view kind,
                           FieldErrors& errors);

/// Counts of a status: none negative, one not above another, collisionCount never falling.
void check_counts(const Value& status, std::initializer_list<std::string_view> keys,
                  FieldErrors& errors);
void check_not_above(const Value& status, std::string_view key, std::string_view limit,
                     std::string_view detail, FieldErrors& errors);
void check_collisions(const Value& object, const Value& old, FieldErrors& errors);

/// The internal form of a strategy with an unknown type, as messages show it.
/// `rolling` is its rolling update, as it is shown where there is one.
Value shown_strategy(const Value& strategy, const Value& rolling);
/// 0 for what is not set.
Value number_or(const Value& value);

/// A name that makes no hostname of the pods that are called by it.
std::vector<std::string> pod_name_warnings(const Value& object);
/// Warnings about the pod template; on update only if the spec changed.
std::vector<std::string> template_warnings(const Value& object, const Value* old);

}  // namespace dibs::api::workload
