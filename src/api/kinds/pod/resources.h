#pragma once
// Amounts that pods ask for: names of resources, requests and limits, sums, quality of service.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/quantity.h"

namespace dibs::api {

/// A resource list by name; names sorted.
using Amounts = std::map<std::string, Quantity, std::less<>>;

/// The amount of a Value that holds a quantity; zero when it is none.
Quantity quantity_of(const Value& value);
/// True when both are the same amount, however they are spelled.
bool same_amount(const Value& a, const Value& b);
Amounts amounts_of(const Value& list);
Value to_value(const Amounts& amounts);
/// Adds up; takes the larger of each.
void add_amounts(Amounts& sum, const Amounts& more);
void max_amounts(Amounts& sum, const Amounts& other);

/// No domain, or one of kubernetes.io: not of a device plugin.
bool is_native_resource(std::string_view name);
bool is_huge_page_resource(std::string_view name);
/// Whole numbers only.
bool is_integer_resource(std::string_view name);
/// More may be limited than is requested.
bool is_overcommit_allowed(std::string_view name);
bool is_standard_resource(std::string_view name);
bool is_standard_container_resource(std::string_view name);
bool is_standard_quota_resource(std::string_view name);

void validate_resource_name(std::string_view name, const Path& path, FieldErrors& errors);
/// The same of a resource that containers ask for.
void validate_container_resource_name(std::string_view name, const Path& path, FieldErrors& errors);
/// Not negative, and a whole number where the resource is counted.
void validate_resource_amount(std::string_view name, const Value& amount, const Path& path,
                              FieldErrors& errors);

/// requests, limits and claims of a container. `claim_names` are those of spec.resourceClaims,
/// sorted.
void validate_container_resources(const Value& resources,
                                  const std::vector<std::string>& claim_names, const Path& path,
                                  FieldErrors& errors);
/// spec.resources against those of the containers.
void validate_pod_level_resources(const Value& spec, const Path& path, FieldErrors& errors);

/// What the containers need together: the sum of those that run at the same time, at the worst
/// moment of start-up. `kind` is "requests" or "limits".
Amounts aggregate_containers(const Value& spec, std::string_view kind);
/// The same with spec.resources taking precedence, and the overhead.
Amounts pod_requests(const Value& spec);
Amounts pod_limits(const Value& spec);

/// "Guaranteed", "Burstable" or "BestEffort".
std::string_view qos_class(const Value& spec);

/// Requests that are not given follow the limits; spec.resources.requests follow the containers.
void set_request_defaults(Value& spec);

}  // namespace dibs::api
