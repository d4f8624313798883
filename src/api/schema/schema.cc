#include "api/schema/schema.h"

#include <algorithm>

namespace dibs::api {
namespace {

// Names of one structure differ in length or in one of these characters, mostly.
std::size_t hash_of(std::string_view name) {
  if (name.empty()) return 0;
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(name[i]); };
  return name.size() * 7 + at(0) * 31u + at(name.size() - 1) * 131u + at(name.size() / 2) * 61u;
}

}  // namespace

void Schema::index_fields() {
  std::size_t size = 4;
  while (size < fields.size() * 2) size *= 2;
  slots_.assign(size, 0);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::size_t at = hash_of(fields[i].name) & (size - 1);
    while (slots_[at] != 0) at = (at + 1) & (size - 1);
    slots_[at] = static_cast<std::uint16_t>(i + 1);
  }
}

const Field* Schema::field(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  if (!slots_.empty()) {
    for (std::size_t at = hash_of(name) & mask; slots_[at] != 0; at = (at + 1) & mask) {
      const std::size_t place = slots_[at] - 1u;
      if (place < fields.size() && fields[place].name == name) return &fields[place];
    }
  }
  // Also where fields were put in after the index was made.
  const auto it = std::lower_bound(fields.begin(), fields.end(), name,
                                   [](const Field& f, std::string_view n) { return f.name < n; });
  return it != fields.end() && it->name == name ? &*it : nullptr;
}

}  // namespace dibs::api
