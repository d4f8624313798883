#include "alloc/amount.h"

#include <limits>

namespace dibs::alloc {

Amount to_amount(const Quantity& quantity) {
  const std::int64_t whole = quantity.value();
  const bool saturated = whole == std::numeric_limits<std::int64_t>::max() ||
                         whole == std::numeric_limits<std::int64_t>::min();
  if (!saturated && quantity.compare(Quantity(whole)) == 0) {
    return static_cast<Amount>(whole) * kAmountUnit;
  }
  // In billions of units, rounded away from zero; the rest fits easily.
  constexpr std::int32_t kBillions = 9;
  const std::int64_t billions = quantity.scaled_value(kBillions);
  if (billions == std::numeric_limits<std::int64_t>::max() ||
      billions == std::numeric_limits<std::int64_t>::min()) {
    return static_cast<Amount>(billions) * kAmountUnit * kAmountUnit;
  }
  Quantity rest = quantity;
  rest.subtract(Quantity(billions, kBillions));
  constexpr std::int32_t kBillionths = -9;
  return static_cast<Amount>(billions) * kAmountUnit * kAmountUnit + rest.scaled_value(kBillionths);
}

}  // namespace dibs::alloc
