// How much of a shared device's capacity a request may take: a list of amounts, or a range with
// steps.
#include <limits>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/resource/checks.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kValues = 10;
constexpr std::string_view kOffStep = "value is not a multiple of a given step (";

bool is_fraction(const Value& amount) {
  if (amount.is_null()) return false;
  Quantity whole = quantity_of(amount);
  if (whole.exact().has_value()) return false;
  // Beyond int64 an amount is whole unless its thousandths say otherwise.
  return whole.scaled_value(-3) % 1000 != 0;
}

void check_values(const Value& capacity, const Value& policy, const Path& path, Findings& found) {
  const Value& values = policy["validValues"];
  Quantity total = quantity_of(capacity["value"]);
  Quantity standard = quantity_of(policy["default"]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (quantity_of(values[i - 1]) > quantity_of(values[i])) {
      found.errors.invalid(path.index(i), values[i], "values must be sorted in ascending order");
    }
  }
  bool offered = false;
  if (fits(values, kValues, path, found, false)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Quantity amount = quantity_of(values[i]);
      if (amount > total) {
        found.errors.invalid(
            path.index(i), values[i],
            cat("option is larger than capacity value: ", capacity["value"].as_string()));
      }
      offered = offered || amount == standard;
    }
    // Without fractions two amounts are the same when their whole numbers are.
    bool fractions = found.on("DRAFractionalCapacityRange");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Quantity amount = quantity_of(values[i]);
      std::string key = fractions ? amount.canonical() : cat(amount.value());
      if (!seen.insert(key).second) found.errors.duplicate(path.index(i), Value(key));
    }
  }
  if (!offered) {
    found.errors.invalid(path, policy["default"],
                         "default value is not valid according to the requestPolicy");
  }
}

struct Range {
  const Value& total;
  const Value& standard;
  const Value& min;
  const Value& max;
  const Value& step;
};

// default, min, max and step under their names; the absent ones are left out.
template <typename Visit>
void each_bound(const Range& range, Visit visit) {
  visit("default", range.standard);
  visit("min", range.min);
  if (!range.max.is_null()) visit("max", range.max);
  if (!range.step.is_null()) visit("step", range.step);
}

void check_step(const Range& range, bool milli, const Path& path, Findings& found) {
  auto amount = [&](const Value& value) {
    Quantity quantity = quantity_of(value);
    return milli ? quantity.milli_value() : quantity.value();
  };
  std::int64_t step = amount(range.step);
  std::int64_t min = amount(range.min);
  for (const Value* value : {&range.standard, &range.max}) {
    if (value->is_null() || (amount(*value) - min) % step == 0) continue;
    found.errors.invalid(
        path, *value,
        cat(kOffStep, range.step.as_string(), ") from (", range.min.as_string(), ")"));
  }
}

// The arithmetic of steps needs whole numbers that fit.
bool check_whole(const Range& range, const Path& path, Findings& found) {
  bool fine = true;
  each_bound(range, [&](const char* name, const Value& value) {
    Quantity amount = quantity_of(value);
    if (amount.sign() < 0) {
      found.errors.invalid(path.child(name), value, "must be greater than or equal to 0");
      fine = false;
    } else if (amount > Quantity(std::numeric_limits<std::int64_t>::max())) {
      found.errors.invalid(path.child(name), value, "must not be larger than 9223372036854775807");
      fine = false;
    }
  });
  return fine;
}

bool check_thousandths(const Range& range, const Path& path, Findings& found) {
  bool fine = true;
  each_bound(range, [&](const char* name, const Value& value) {
    Quantity amount = quantity_of(value);
    if (Quantity(amount.milli_value(), -3) == amount) return;
    found.errors.invalid(path.child(name), value, "value cannot be represented as a milli value");
    fine = false;
  });
  return fine;
}

void check_range(const Range& range, const Path& path, Findings& found) {
  Quantity total = quantity_of(range.total);
  std::string_view total_text = range.total.as_string();
  if (range.min.is_null()) {
    found.errors.required(path.child("min"), "required when validRange is defined");
    return;
  }
  // Before 1.37 the default's faults stood at the bound that it breaks.
  bool new_paths = found.features.minor() >= 37;
  Quantity min = quantity_of(range.min);
  Quantity standard = quantity_of(range.standard);
  if (min > total) {
    found.errors.invalid(path.child("min"), range.min,
                         cat("min is larger than capacity value: ", total_text));
  }
  if (standard < min) {
    found.errors.invalid(path.child(new_paths ? "default" : "min"), range.standard,
                         cat("default is less than min: ", range.min.as_string()));
  }
  if (!range.max.is_null()) {
    Quantity max = quantity_of(range.max);
    if (min > max) {
      found.errors.invalid(path.child("max"), range.min,
                           cat("min is larger than max: ", range.max.as_string()));
    }
    if (max > total) {
      found.errors.invalid(path.child("max"), range.max,
                           cat("max is larger than capacity value: ", total_text));
    }
    if (standard > max) {
      found.errors.invalid(path.child(new_paths ? "default" : "max"), range.standard,
                           cat("default is more than max: ", range.max.as_string()));
    }
  }
  bool milli = found.on("DRAFractionalCapacityRange") &&
               (is_fraction(range.min) || is_fraction(range.max) || is_fraction(range.step) ||
                is_fraction(range.standard));
  if (milli && !check_thousandths(range, path, found)) return;
  if (range.step.is_null()) return;
  Path step_at = path.child("step");
  Quantity step = quantity_of(range.step);
  if (step.sign() <= 0) {
    found.errors.invalid(step_at, range.step, "must be greater than zero");
    return;
  }
  Quantity first = min;
  first.add(step);
  if (first > total) {
    found.errors.invalid(
        step_at, range.step,
        cat("one step ", first.str(), " is larger than capacity value: ", total_text));
  }
  if (milli || check_whole(range, path, found)) check_step(range, milli, step_at, found);
}

}  // namespace

void check_request_policy(const Value& capacity, const Path& path, Findings& found) {
  const Value& policy = capacity["requestPolicy"];
  const Value& range = policy["validRange"];
  bool values = !policy["validValues"].empty();
  if (values && !range.is_null()) {
    found.errors.forbidden(path,
                           "exactly one policy can be specified, cannot specify \"validValues\" "
                           "and \"validRange\" at the same time");
  } else if ((values || !range.is_null()) && !is_set(policy, "default")) {
    found.errors.required(path.child("default"), values ? "required when validValues is defined"
                                                        : "required when validRange is defined");
  } else if (values) {
    check_values(capacity, policy, path.child("validValues"), found);
  } else if (!range.is_null()) {
    check_range({capacity["value"], policy["default"], range["min"], range["max"], range["step"]},
                path.child("validRange"), found);
  }
}

}  // namespace dibs::api
