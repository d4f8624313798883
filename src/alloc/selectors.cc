#include "alloc/selectors.h"

#include <algorithm>

namespace dibs::alloc {
namespace {

constexpr std::string_view kMissingKey = "no such key:";
constexpr std::string_view kMissingKeyAdvice =
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields";

}  // namespace

SelectorTable::SelectorTable(Resources resources, const api::SelectorEnvironment& environment)
    : resources_(resources),
      environment_(environment),
      lists_(api::lists_are_read(environment)),
      table_(resources == Resources::named ? api::kNamedVariables : 1) {}

SelectorId SelectorTable::intern(std::string_view expression) {
  const auto [at, added] =
      ids_.try_emplace(std::string(expression), static_cast<SelectorId>(selectors_.size()));
  if (!added) return at->second;
  Entry entry;
  entry.compiled = resources_ == Resources::named ? api::compile_named_resources(expression, true)
                                                  : api::compile_selector(expression, environment_);
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

SelectorTable::Input SelectorTable::read(const Change& change) const {
  if (resources_ == Resources::named) return api::InstanceInput::read(change.device);
  return api::DeviceInput::read(change.driver, change.device, lists_);
}

void SelectorTable::take_changes() {
  for (Change& change : changes_) {
    if (change.row >= places_.size()) {
      places_.resize(std::max<std::size_t>(change.row + 1, places_.size() * 2), kNoPlace);
      inputs_.resize(places_.size());
    }
    cel::Row& place = places_[change.row];
    Input& input = inputs_[change.row];
    if (change.device.is_null()) {
      if (place != kNoPlace) table_.remove(place);
      place = kNoPlace;
      input = std::monostate();
      continue;
    }
    // The table lets go of the old device before the old device goes.
    Input fresh = read(change);
    const auto put = [&](const auto& device) {
      const bool failed = !device.error().empty();
      if (place == kNoPlace) {
        place = failed ? table_.add_failed(device.error()) : table_.add(device.variables());
      } else if (failed) {
        table_.change_to_failed(place, device.error());
      } else {
        table_.change(place, device.variables());
      }
    };
    if (const auto* device = std::get_if<api::DeviceInput>(&fresh)) {
      put(*device);
    } else {
      put(std::get<api::InstanceInput>(fresh));
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
  const api::Selector& selector = selectors_[id].compiled;
  if (const auto* instance = std::get_if<api::InstanceInput>(&inputs_[row])) {
    return api::match(selector, *instance).error;
  }
  std::string text = api::match(selector, std::get<api::DeviceInput>(inputs_[row])).error;
  if (text.find(kMissingKey) != std::string::npos &&
      text.find(kMissingKeyAdvice) == std::string::npos) {
    text.append(kMissingKeyAdvice);
  }
  return text;
}

bool SelectorTable::may_fail(const std::vector<SelectorId>& first,
                             const std::vector<SelectorId>& then) {
  std::vector<const cel::Filter*> filters;
  bool any = false;
  for (const auto* list : {&first, &then}) {
    for (const SelectorId id : *list) {
      Entry& entry = selectors_[id];
      if (entry.version != version_) update(entry);
      filters.push_back(entry.filter.get());
      any = any || entry.filter == nullptr || !entry.filter->failed().empty();
    }
  }
  if (!any) return false;
  const std::size_t words = table_.rows().words().size();
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t passed = table_.rows().word(word);
    for (const cel::Filter* filter : filters) {
      if ((filter == nullptr ? passed : passed & filter->failed().word(word)) != 0) return true;
      if (filter == nullptr) break;
      passed &= filter->yes().word(word);
    }
  }
  return false;
}

std::uint64_t SelectorTable::evaluations() const {
  std::uint64_t total = 0;
  for (const Entry& entry : selectors_) {
    if (entry.filter != nullptr) total += entry.filter->evaluations();
  }
  return total;
}

}  // namespace dibs::alloc
