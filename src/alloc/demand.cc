#include "alloc/demand.h"

#include "base/strings.h"

namespace dibs::alloc {
namespace {

/// What is wrong with an alternative whatever the node; fills the class in.
std::string check(const Features& features, const Claim& claim, const Request& request,
                  Alternative& made, const Demand::ClassLookup& classes) {
  const DeviceRequest& spec = *made.spec;
  const std::string where = cat("claim ", claim.id, ", request ", spec.name);
  if (!features.consumable_capacity && spec.states_capacity) {
    return cat("claim ", claim.id, request.prioritized ? ", subrequest " : ", request ", spec.name,
               ": has capacity requests, but the DRAConsumableCapacity feature is disabled");
  }
  if (!features.derived_attributes && !spec.derived.empty()) {
    return cat(where, ": cannot handle request with derived attributes, the feature is disabled");
  }
  if (spec.unknown_selector >= 0) {
    return cat(where, ", selector #", spec.unknown_selector,
               ": CEL expression empty (unsupported selector type?)");
  }
  if (!features.admin_access && spec.states_admin_access) {
    return cat(where, ": admin access is requested, but the feature is disabled");
  }
  if (spec.class_name.empty()) {
    return cat(where, ": missing device class name (unsupported request type?)");
  }
  made.device_class = classes(spec.class_name);
  if (made.device_class == nullptr) {
    return cat(where, ": could not retrieve device class ", spec.class_name,
               ": deviceclass.resource.k8s.io ", quoted(spec.class_name), " not found");
  }
  if (spec.mode == DeviceRequest::Mode::other) {
    return cat(where, ": unsupported count mode ", spec.mode_name);
  }
  return {};
}

}  // namespace

Demand Demand::part(const Bits& positions_kept, const Bits& constraints_kept) const {
  Demand made;
  made.constraints = constraints;
  made.most_results = most_results;
  for (std::uint32_t c = 0; c < claims.size(); ++c) {
    ClaimDemand claim = claims[c];
    const std::uint32_t first = claim.first_position;
    claim.first_position = static_cast<std::uint32_t>(made.positions.size());
    claim.position_count = 0;
    for (std::uint32_t p = first; p < first + claims[c].position_count; ++p) {
      if (!positions_kept.test(p)) continue;
      Position position = positions[p];
      position.first = static_cast<std::uint32_t>(made.alternatives.size());
      for (std::uint32_t i = 0; i < position.count; ++i) {
        Alternative alternative = alternatives[positions[p].first + i];
        alternative.position = static_cast<std::uint32_t>(made.positions.size());
        std::erase_if(alternative.constraints, [&](const BoundConstraint& bound) {
          return !constraints_kept.test(bound.constraint);
        });
        made.alternatives.push_back(std::move(alternative));
      }
      made.positions.push_back(std::move(position));
      ++claim.position_count;
    }
    made.claims.push_back(std::move(claim));
  }
  return made;
}

Demand Demand::prepare(Inventory& inventory, std::vector<std::shared_ptr<const Claim>> claims,
                       const ClassLookup& classes) {
  Demand made;
  const Features& features = inventory.features();
  if (inventory.resources() == Resources::named) made.most_results = kMostNamedResults;
  for (std::shared_ptr<const Claim>& shared : claims) {
    ClaimDemand part;
    part.claim = std::move(shared);
    const Claim& claim = *part.claim;
    const auto claim_index = static_cast<std::uint32_t>(made.claims.size());
    part.first_position = static_cast<std::uint32_t>(made.positions.size());
    part.position_count = static_cast<std::uint32_t>(claim.requests.size());
    part.first_constraint = static_cast<std::uint32_t>(made.constraints.size());
    for (std::size_t i = 0; i < claim.constraints.size(); ++i) {
      made.constraints.push_back(&claim.constraints[i]);
      if (claim.constraints[i].kind == Constraint::Kind::other && part.constraint_error.empty()) {
        part.constraint_error = cat("claim ", claim.id, ", constraint #", i,
                                    ": empty constraint (unsupported constraint type?)");
      }
    }
    for (const Request& request : claim.requests) {
      Position position;
      position.claim = claim_index;
      position.first = static_cast<std::uint32_t>(made.alternatives.size());
      position.count = static_cast<std::uint32_t>(request.alternatives.size());
      position.prioritized = request.prioritized;
      if (request.prioritized && !features.prioritized_list) {
        position.error = cat("claim ", claim.id, ", request ", request.name,
                             ": has subrequests, but the DRAPrioritizedList feature is disabled");
      }
      for (const DeviceRequest& spec : request.alternatives) {
        Alternative alternative;
        alternative.claim = claim_index;
        alternative.position = static_cast<std::uint32_t>(made.positions.size());
        alternative.request = &request;
        alternative.spec = &spec;
        alternative.error = check(features, claim, request, alternative, classes);
        if (alternative.error.empty()) {
          for (const std::string& selector : alternative.device_class->selectors) {
            alternative.class_selectors.push_back(inventory.selectors().intern(selector));
          }
          for (const std::string& selector : spec.selectors) {
            alternative.selectors.push_back(inventory.selectors().intern(selector));
          }
        }
        for (std::size_t i = 0; i < claim.constraints.size(); ++i) {
          const Constraint& constraint = claim.constraints[i];
          if (!constraint.applies_to(request, spec)) continue;
          BoundConstraint bound;
          bound.constraint = part.first_constraint + static_cast<std::uint32_t>(i);
          for (const DerivedAttribute& derived : spec.derived) {
            if (derived.name != constraint.attribute) continue;
            bound.derived = true;
            bound.column = inventory.attributes().derived(derived.expression);
          }
          if (!bound.derived) bound.column = inventory.attributes().attribute(constraint.attribute);
          alternative.constraints.push_back(bound);
        }
        made.alternatives.push_back(std::move(alternative));
      }
      made.positions.push_back(std::move(position));
    }
    made.claims.push_back(std::move(part));
  }
  return made;
}

bool Demand::may_fail(Inventory& inventory) const {
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const Alternative& one) {
    return inventory.selectors().may_fail(one.class_selectors, one.selectors);
  });
}

}  // namespace dibs::alloc
