#include "alloc/capacity.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMilliUnit = kAmountUnit / 1000;
constexpr std::string_view kNotRepresentable =
    "capacity request cannot be represented in the device's range arithmetic: ";

/// Whole units, away from zero, as the API rounds quantities.
Amount whole_units(Amount amount) {
  const Amount rounded = amount / kAmountUnit;
  if (amount % kAmountUnit == 0) return rounded;
  return amount > 0 ? rounded + 1 : rounded - 1;
}

bool fits_milli(Amount amount) {
  return amount % kMilliUnit == 0 && amount / kMilliUnit <= kMax && amount / kMilliUnit >= -kMax;
}

/// The unit in which a range computes, or 0 where the range has no step.
std::int64_t range_unit(const CapacityPolicy& policy, bool fractional) {
  if (!policy.has_step) return 0;
  if (!fractional) return kAmountUnit;
  const Amount step = to_amount(policy.step);
  const bool milli = fits_milli(step) && step >= kMilliUnit &&
                     (!policy.has_min || fits_milli(to_amount(policy.min))) &&
                     (!policy.has_max || fits_milli(to_amount(policy.max)));
  return milli ? kMilliUnit : kAmountUnit;
}

const CapacityRequest* find_request(const DeviceRequest& request, const std::string& name) {
  for (const CapacityRequest& candidate : request.capacity) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

struct Rounded {
  Amount amount = 0;
  std::string error;
};

Rounded round_up(const CapacityPolicy& policy, const CapacityRequest& request, bool fractional) {
  const Amount min = to_amount(policy.min);
  const std::int64_t unit = range_unit(policy, fractional);
  // What the policy itself proposes is never refused, so it is not rounded either.
  const bool proposed = policy.has_default && request.amount == policy.fallback_amount;
  if (unit == 0 && proposed) return {request.amount, {}};
  if (request.amount < min) return {min, {}};
  if (unit == 0) return {request.amount, {}};
  const bool milli = unit == kMilliUnit;
  const std::string text = request.quantity.str();
  if (milli) {
    if (!fits_milli(request.amount)) {
      return {0, cat("request ", text, " is not a representable milli value")};
    }
  } else if (request.amount > static_cast<Amount>(kMax) * kAmountUnit) {
    return {0, cat("request ", text, " exceeds MaxInt64")};
  }
  const Amount asked = milli ? request.amount / unit : whole_units(request.amount);
  const Amount base = milli ? min / unit : whole_units(min);
  Amount step = to_amount(policy.step);
  step = std::max<Amount>(1, milli ? step / unit : whole_units(step));
  const Amount steps = (asked - base + step - 1) / step;
  const Amount total = base + steps * step;
  if (total > kMax) {
    return {0, cat("rounding request ", text, " up to the next step passes ",
                   milli ? "the milli-value range" : "MaxInt64")};
  }
  return {total * unit, {}};
}

bool violates(const CapacityPolicy& policy, Amount amount, bool fractional) {
  if (policy.has_default && amount == policy.fallback_amount) return false;
  if (policy.has_range) {
    if (policy.has_max && amount > to_amount(policy.max)) return true;
    const std::int64_t unit = range_unit(policy, fractional);
    if (unit == 0) return false;
    const bool milli = unit == kMilliUnit;
    const Amount min = to_amount(policy.min);
    Amount step = to_amount(policy.step);
    step = std::max<Amount>(1, milli ? step / unit : whole_units(step));
    const Amount above = milli ? (amount - min) / unit : whole_units(amount) - whole_units(min);
    return above % step != 0;
  }
  if (policy.values.empty()) return false;
  return std::none_of(policy.values.begin(), policy.values.end(),
                      [amount](const Quantity& value) { return to_amount(value) == amount; });
}

/// The smallest listed value that is enough.
const Quantity* enough(const CapacityPolicy& policy, Amount amount) {
  const Quantity* best = nullptr;
  for (const Quantity& value : policy.values) {
    if (to_amount(value) >= amount && (best == nullptr || value < *best)) best = &value;
  }
  return best;
}

}  // namespace

Intake intake(const Device& device, const DeviceRequest& request, bool fractional) {
  Intake made;
  for (const CapacityRequest& wanted : request.capacity) {
    if (std::none_of(device.capacities.begin(), device.capacities.end(),
                     [&](const Capacity& capacity) { return capacity.name == wanted.name; })) {
      made.kind = Intake::Kind::refused;
      return made;
    }
  }
  made.amounts.reserve(device.capacities.size());
  for (const Capacity& capacity : device.capacities) {
    const CapacityPolicy* policy = capacity.policy.get();
    const CapacityRequest* wanted = find_request(request, capacity.name);
    Amount amount = 0;
    if (wanted == nullptr) {
      amount = policy != nullptr && policy->has_default ? policy->fallback_amount : capacity.amount;
    } else if (policy == nullptr) {
      amount = wanted->amount;
    } else if (policy->has_range && policy->has_min) {
      Rounded rounded = round_up(*policy, *wanted, fractional);
      if (!rounded.error.empty()) {
        made.kind = Intake::Kind::error;
        made.error =
            cat("capacity ", quoted(capacity.name), ": ", kNotRepresentable, rounded.error);
        return made;
      }
      amount = rounded.amount;
    } else {
      const Quantity* value = enough(*policy, wanted->amount);
      amount = value != nullptr ? to_amount(*value) : wanted->amount;
    }
    if (amount < 0) {
      made.kind = Intake::Kind::error;
      made.error = cat("capacity ", quoted(capacity.name), ": capacity value is negative");
      return made;
    }
    made.amounts.push_back(amount);
  }
  for (std::size_t i = 0; i < made.amounts.size(); ++i) {
    const Capacity& capacity = device.capacities[i];
    if (made.amounts[i] > capacity.amount ||
        (capacity.policy != nullptr && violates(*capacity.policy, made.amounts[i], fractional))) {
      made.kind = Intake::Kind::refused;
      return made;
    }
  }
  return made;
}

Quantity consumed_quantity(const Capacity& capacity, const DeviceRequest& request, Amount amount) {
  const CapacityPolicy* policy = capacity.policy.get();
  const CapacityRequest* wanted = find_request(request, capacity.name);
  if (wanted == nullptr) {
    return policy != nullptr && policy->has_default ? policy->fallback : capacity.value;
  }
  if (policy == nullptr) return wanted->quantity;
  if (policy->has_range && policy->has_min) {
    if (amount == wanted->amount && !policy->has_step) return wanted->quantity;
    if (wanted->amount < to_amount(policy->min)) return policy->min;
    const Quantity::Format format = policy->step.format();
    if (amount % kAmountUnit == 0) {
      return Quantity(static_cast<std::int64_t>(amount / kAmountUnit), 0, format);
    }
    constexpr std::int32_t kMilliScale = -3;
    return Quantity(static_cast<std::int64_t>(amount / kMilliUnit), kMilliScale, format);
  }
  const Quantity* value = enough(*policy, wanted->amount);
  return value != nullptr ? *value : wanted->quantity;
}

}  // namespace dibs::alloc
