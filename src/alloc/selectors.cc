#include "alloc/selectors.h"

#include <algorithm>

namespace dibs::alloc {
namespace {

constexpr std::string_view kMissingKey = "no such key:";
constexpr std::string_view kMissingKeyAdvice =
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields";

}  // namespace

SelectorTable::SelectorTable(const api::SelectorEnvironment& environment)
    : environment_(environment), lists_(api::lists_are_read(environment)), table_(1) {}

SelectorId SelectorTable::intern(std::string_view expression) {
  const auto [at, added] =
      ids_.try_emplace(std::string(expression), static_cast<SelectorId>(selectors_.size()));
  if (!added) return at->second;
  Entry entry;
  entry.compiled = api::compile_selector(expression, environment_);
  if (entry.compiled.program != nullptr) {
    entry.filter =
        std::make_unique<cel::Filter>(table_, entry.compiled.program, api::kSelectorCostLimit);
  }
  selectors_.push_back(std::move(entry));
  return at->second;
}

void SelectorTable::put(Row row, const std::string& driver, const json::Value& device) {
  changes_.push_back({row, driver, device});
  ++version_;
}

void SelectorTable::remove(Row row) {
  changes_.push_back({row, {}, {}});
  ++version_;
}

void SelectorTable::take_changes() {
  for (Change& change : changes_) {
    if (change.row >= places_.size()) {
      places_.resize(std::max<std::size_t>(change.row + 1, places_.size() * 2), kNoPlace);
      inputs_.resize(places_.size());
    }
    cel::Row& place = places_[change.row];
    std::optional<api::DeviceInput>& input = inputs_[change.row];
    if (change.device.is_null()) {
      if (place != kNoPlace) table_.remove(place);
      place = kNoPlace;
      input.reset();
      continue;
    }
    // The table lets go of the old device before the old device goes.
    api::DeviceInput fresh = api::DeviceInput::read(change.driver, change.device, lists_);
    const bool failed = !fresh.error().empty();
    if (place == kNoPlace) {
      place = failed ? table_.add_failed(fresh.error()) : table_.add({&fresh.value(), 1});
    } else if (failed) {
      table_.change_to_failed(place, fresh.error());
    } else {
      table_.change(place, {&fresh.value(), 1});
    }
    input = std::move(fresh);
  }
  changes_.clear();
}

void SelectorTable::update(Entry& entry) {
  if (!changes_.empty()) take_changes();
  if (entry.filter != nullptr) entry.filter->update();
  entry.version = version_;
}

std::string SelectorTable::error(SelectorId id, Row row) const {
  std::string text = api::match(selectors_[id].compiled, *inputs_[row]).error;
  if (text.find(kMissingKey) != std::string::npos &&
      text.find(kMissingKeyAdvice) == std::string::npos) {
    text.append(kMissingKeyAdvice);
  }
  return text;
}

std::uint64_t SelectorTable::evaluations() const {
  std::uint64_t total = 0;
  for (const Entry& entry : selectors_) {
    if (entry.filter != nullptr) total += entry.filter->evaluations();
  }
  return total;
}

}  // namespace dibs::alloc
