// Any bytes as a label selector and as a field selector.
#include "api/merge/selectors.h"
#include "fuzz/targets.h"

namespace dibs::fuzz {

int fuzz_selectors(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto selector = api::parse_label_selector(text); selector.ok()) {
    const auto again = api::parse_label_selector(selector->str());
    require(again.ok() && again->str() == selector->str(), "what is written reads back");
    (void)selector->matches(api::Value());
  }
  if (const auto selector = api::parse_field_selector(text); selector.ok()) {
    (void)selector->matches([](std::string_view field) { return field; });
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_selectors)
