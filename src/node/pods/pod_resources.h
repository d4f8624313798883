#pragma once
// What a pod asks for and may take: of its containers at their worst moment, of the pod as a whole,
// its overhead, and of claims whose devices are processor time, memory or huge pages of the node
// itself (status.nodeAllocatableResourceClaimStatuses). Pure functions; cpu counts in thousandths,
// everything else in its unit.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::node {

/// Of a quantity's text; 0 where there is none.
std::int64_t amount_of(const json::Value& quantity, std::string_view resource);
/// Of two that are no more than amount_of() ever gives, or than this does.
std::int64_t sum_of(std::int64_t a, std::int64_t b);

/// What the pod needs at once of a resource.
std::int64_t requested(const json::Value& pod, std::string_view resource);
/// The same of `requests` or `limits`; nothing where neither pod nor container names it.
std::optional<std::int64_t> total_of(const json::Value& pod, const char* which,
                                     std::string_view resource);
/// Of the containers and claims alone, whatever the pod as a whole has.
std::optional<std::int64_t> containers_total(const json::Value& pod, const char* which,
                                             std::string_view resource);

/// Of all the pod's claims.
std::int64_t claimed(const json::Value& pod, std::string_view resource);
/// What the claims that it uses let a container take beyond its own limit.
std::int64_t claimed_by(const json::Value& pod, std::string_view container,
                        std::string_view resource);
/// A container's own request with its part of the claims that it shares with others.
std::int64_t memory_share(const json::Value& pod, const json::Value& container);

/// status.resources and status.allocatedResources of a pod: its totals, null where it names none.
json::Value shown_resources(const json::Value& pod);
json::Value shown_requests(const json::Value& pod);

/// "Guaranteed", "Burstable", "BestEffort"
std::string_view qos_class(const json::Value& pod);

}  // namespace dibs::node
