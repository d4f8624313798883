#include "api/devices/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/semver.h"
#include "base/strings.h"
#include "cel/libraries/quantity.h"

namespace dibs::api {
namespace {

/// Fewer entries are searched one after the other.
constexpr std::size_t kSearched = 32;

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The entry whose member is the name, or nullptr; they are sorted by that member.
template <typename Entry>
const Entry* lookup(std::span<const Entry> entries, std::string_view name,
                    std::string_view Entry::*member) {
  if (entries.size() <= kSearched) {
    for (const Entry& entry : entries) {
      if (same(entry.*member, name)) return &entry;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), name,
      [member](const Entry& entry, std::string_view sought) { return entry.*member < sought; });
  return at != entries.end() && same((*at).*member, name) ? &*at : nullptr;
}

/// The names within one domain.
class Names final : public cel::Map {
 public:
  explicit Names(std::span<const DeviceEntry> entries) : entries_(entries) {}
  std::size_t size() const override { return entries_.size(); }
  bool contains(const cel::Value& key) const override { return entry(key) != nullptr; }
  bool find(const cel::Value& key, cel::Value& out) const override {
    const DeviceEntry* found = entry(key);
    if (found == nullptr) return false;
    out = found->value;
    return true;
  }
  const cel::Value* peek(const cel::Value& key) const override {
    const DeviceEntry* found = entry(key);
    return found == nullptr ? nullptr : &found->value;
  }
  cel::Value key_at(std::size_t i) const override { return cel::Value::borrow(entries_[i].id); }
  cel::Value value_at(std::size_t i) const override { return entries_[i].value; }

 private:
  const DeviceEntry* entry(const cel::Value& key) const {
    return key.is(cel::Kind::string) ? lookup(entries_, key.text(), &DeviceEntry::id) : nullptr;
  }
  std::span<const DeviceEntry> entries_;
};

struct Domain {
  std::string_view name;
  cel::Value names;
};

class Domains final : public cel::Map {
 public:
  explicit Domains(std::span<const DeviceEntry> entries) {
    for (std::size_t first = 0; first < entries.size();) {
      std::size_t last = first + 1;
      while (last < entries.size() && entries[last].domain == entries[first].domain) ++last;
      const cel::Map* names = new Names(entries.subspan(first, last - first));
      domains_.push_back({entries[first].domain, cel::Value::map(names)});
      first = last;
    }
  }
  std::size_t size() const override { return domains_.size(); }
  bool contains(const cel::Value& key) const override { return domain(key) != nullptr; }
  bool find(const cel::Value& key, cel::Value& out) const override {
    out = *peek(key);
    return true;
  }
  const cel::Value* peek(const cel::Value& key) const override {
    const Domain* found = domain(key);
    return found != nullptr ? &found->names : &none();
  }
  cel::Value key_at(std::size_t i) const override { return cel::Value::borrow(domains_[i].name); }
  cel::Value value_at(std::size_t i) const override { return domains_[i].names; }

 private:
  const Domain* domain(const cel::Value& key) const {
    if (!key.is(cel::Kind::string)) return nullptr;
    return lookup(std::span<const Domain>(domains_), key.text(), &Domain::name);
  }
  static const cel::Value& none() {
    static const cel::Value made =
        cel::Value::map(static_cast<const cel::Map*>(new Names(std::span<const DeviceEntry>())));
    return made;
  }
  std::vector<Domain> domains_;
};

/// A map rather than an object of a type: that is what it turns out to be for dyn(device).
class Device final : public cel::Map {
 public:
  std::size_t size() const override { return std::size(kFields); }
  bool find(const cel::Value& key, cel::Value& out) const override {
    const cel::Value* found = peek(key);
    if (found != nullptr) out = *found;
    return found != nullptr;
  }
  const cel::Value* peek(const cel::Value& key) const override {
    if (!key.is(cel::Kind::string)) return nullptr;
    for (const Field& field : kFields) {
      if (same(field.name, key.text())) return &(this->*field.value);
    }
    return nullptr;
  }
  cel::Value key_at(std::size_t i) const override { return cel::Value::borrow(kFields[i].name); }
  cel::Value value_at(std::size_t i) const override { return this->*kFields[i].value; }

  // Values and views refer to what stands before them.
  json::Value source;
  std::string driver;
  std::string error;
  std::vector<DeviceEntry> attribute_entries;
  std::vector<DeviceEntry> capacity_entries;
  cel::Value driver_value;
  cel::Value multiple;
  cel::Value attributes;
  cel::Value capacity;

 private:
  struct Field {
    std::string_view name;
    cel::Value Device::*value;
  };
  static constexpr Field kFields[] = {{"allowMultipleAllocations", &Device::multiple},
                                      {"attributes", &Device::attributes},
                                      {"capacity", &Device::capacity},
                                      {"driver", &Device::driver_value}};
};

const Device& device_of(const cel::Value& value) {
  return static_cast<const Device&>(value.as_map());
}

cel::Value failure(std::string_view text) { return cel::Value::error(std::string(text)); }

cel::Value read_scalar(std::string_view kind, const json::Value& value) {
  if (kind == "int") {
    if (value.is_integer()) return cel::Value::integer(value.as_int());
    return failure("int: must be a whole number");
  }
  if (kind == "bool") {
    if (value.is_boolean()) return cel::Value::boolean(value.as_bool());
    return failure("bool: must be true or false");
  }
  if (!value.is_string()) return failure(cat(kind, ": must be a string"));
  if (kind == "string") return cel::Value::borrow(value.as_string());
  Result<SemanticVersion> parsed = SemanticVersion::parse(value.as_string());
  if (!parsed.ok()) return failure(cat("parse semantic version: ", parsed.error().message()));
  return cel::semver_value(std::move(*parsed));
}

/// The value, or an error value.
cel::Value read_attribute(const json::Value& spec, bool lists) {
  struct Kind {
    std::string_view one;
    std::string_view many;
  };
  static constexpr Kind kKinds[] = {
      {"int", "ints"}, {"bool", "bools"}, {"string", "strings"}, {"version", "versions"}};
  for (const Kind& kind : kKinds) {
    const json::Value& many = spec[kind.many];
    if (!lists || many.is_null()) continue;
    if (!many.is_array()) return failure(cat(kind.many, ": must be a list"));
    std::vector<cel::Value> items;
    items.reserve(many.size());
    for (const json::Value& item : many.items()) {
      items.push_back(read_scalar(kind.one, item));
      if (items.back().is_error()) return items.back();
    }
    return cel::Value::list(std::move(items));
  }
  for (const Kind& kind : kKinds) {
    if (const json::Value& one = spec[kind.one]; !one.is_null()) return read_scalar(kind.one, one);
  }
  return failure("unsupported attribute value");
}

cel::Value read_capacity(const json::Value& spec) {
  const json::Value& value = spec["value"];
  if (value.is_string()) return cel::quantity_value(value.as_string());
  if (value.is_integer()) return cel::quantity_value(std::to_string(value.as_int()));
  return failure("value: must be a quantity");
}

/// Sorted by domain and id. A name that is spelled both with and without the driver's domain counts
/// as spelled with it.
template <typename Read>
std::vector<DeviceEntry> read_entries(const json::Value& spec, std::string_view driver,
                                      std::string_view what, std::string& error, Read read) {
  std::vector<DeviceEntry> made;
  made.reserve(spec.size());
  std::string_view failed;
  for (const auto& [name, value] : spec.members()) {
    const std::size_t slash = name.find('/');
    DeviceEntry entry;
    entry.domain = slash == std::string_view::npos ? driver : name.substr(0, slash);
    entry.id = slash == std::string_view::npos ? name : name.substr(slash + 1);
    entry.value = read(value);
    // Of several faults the first by name is told.
    if (entry.value.is_error() && (failed.empty() || name < failed)) {
      failed = name;
      error = cat(what, " ", name, ": ", entry.value.text());
    }
    made.push_back(std::move(entry));
  }
  const auto qualified = [&](const DeviceEntry& entry) {
    return entry.domain.data() != driver.data();
  };
  std::sort(made.begin(), made.end(), [&](const DeviceEntry& a, const DeviceEntry& b) {
    if (a.domain != b.domain) return a.domain < b.domain;
    if (a.id != b.id) return a.id < b.id;
    return qualified(a) && !qualified(b);
  });
  made.erase(std::unique(made.begin(), made.end(),
                         [](const DeviceEntry& a, const DeviceEntry& b) {
                           return a.domain == b.domain && a.id == b.id;
                         }),
             made.end());
  return made;
}

/// Why a value is no boolean, in the words of the API's engine, which differ from kind to kind.
std::string not_convertible(const cel::Value& value) {
  const std::string_view type = value.type_name();
  switch (value.kind()) {
    case cel::Kind::integer:
    case cel::Kind::uinteger:
      return cat("unsupported type conversion from '", type, "' to bool");
    case cel::Kind::string:
      return "unsupported native conversion from string to 'bool'";
    case cel::Kind::real:
      return "type conversion error from Double to 'bool'";
    case cel::Kind::bytes:
      return "type conversion error from Bytes to 'bool'";
    case cel::Kind::list:
    case cel::Kind::map:
      return cat("type conversion error from ", type, " to 'bool'");
    case cel::Kind::type:
      return "type conversion not supported for 'type'";
    case cel::Kind::optional:
      return value.has_content() ? not_convertible(value.content()) : "optional.none() dereference";
    default: {
      std::string_view name = type.substr(type.rfind('.') + 1);
      if (name == "NamedFormat") name = "Format";
      return cat("type conversion error from '", name, "' to 'bool'");
    }
  }
}

const cel::Value& unwrapped(const cel::Value& value) {
  const cel::Value* at = &value;
  while (at->is(cel::Kind::optional) && at->has_content()) at = &at->content();
  return *at;
}

}  // namespace

DeviceInput DeviceInput::read(std::string_view driver, const json::Value& device, bool lists) {
  auto* made = new Device;
  cel::Value held = cel::Value::map(static_cast<const cel::Map*>(made));
  made->source = device;
  made->driver = driver;
  made->driver_value = cel::Value::borrow(made->driver);
  made->multiple = cel::Value::boolean(made->source["allowMultipleAllocations"].as_bool());
  made->attribute_entries =
      read_entries(made->source["attributes"], made->driver, "attribute", made->error,
                   [lists](const json::Value& spec) { return read_attribute(spec, lists); });
  std::string capacity_error;
  made->capacity_entries = read_entries(made->source["capacity"], made->driver, "capacity",
                                        capacity_error, read_capacity);
  if (made->error.empty()) made->error = std::move(capacity_error);
  if (!made->error.empty()) {
    made->attribute_entries.clear();
    made->capacity_entries.clear();
  }
  made->attributes =
      cel::Value::map(static_cast<const cel::Map*>(new Domains(made->attribute_entries)));
  made->capacity =
      cel::Value::map(static_cast<const cel::Map*>(new Domains(made->capacity_entries)));
  return DeviceInput(std::move(held));
}

const std::string& DeviceInput::error() const { return device_of(device_).error; }
std::string_view DeviceInput::driver() const { return device_of(device_).driver; }
std::span<const DeviceEntry> DeviceInput::attributes() const {
  return device_of(device_).attribute_entries;
}
std::span<const DeviceEntry> DeviceInput::capacities() const {
  return device_of(device_).capacity_entries;
}

bool lists_are_read(const SelectorEnvironment& environment) {
  return environment.release >= 37 || (environment.release == 36 && environment.list_attributes);
}

DeviceMatch match_of(const cel::Evaluation& evaluation) {
  DeviceMatch made;
  made.cost = evaluation.cost;
  const cel::Value& value = unwrapped(evaluation.value);
  if (value.is(cel::Kind::boolean))
    made.matches = value.as_boolean();
  else if (evaluation.value.is_error())
    made.error = evaluation.value.text();
  else
    made.error = cat("CEL result of type ", evaluation.value.type_name(),
                     " could not be converted to bool: ", not_convertible(evaluation.value));
  return made;
}

DeviceMatch match(const Selector& selector, const DeviceInput& device,
                  const std::atomic<bool>* cancelled) {
  if (selector.program == nullptr) return {false, selector.message, 0};
  if (!device.error().empty()) return {false, device.error(), 0};
  cel::Limits limits;
  limits.cost = kSelectorCostLimit;
  limits.cancelled = cancelled;
  return match_of(selector.program->evaluate({&device.value(), 1}, limits));
}

}  // namespace dibs::api
