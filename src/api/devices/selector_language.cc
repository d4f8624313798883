#include "api/devices/selector_language.h"

#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/strings.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"

namespace dibs::api {
namespace {

constexpr const char* kDeviceType = "kubernetes.DRADevice";
/// As many values as one device may have in all its attributes.
constexpr std::size_t kMaxIncluded = 48;

constexpr int kConsumableCapacitySince = 34;
constexpr int kListsSince = 36;
/// The base library has includes() from here on, without a bound on the list.
constexpr int kIncludesInBaseSince = 37;
constexpr int kSizesSince = 33;
constexpr int kSemverInBaseSince = 33;

cel::Value includes(const cel::Value* arguments, std::size_t) {
  if (!arguments[0].is(cel::Kind::list))
    return cel::Value::boolean(cel::equal(arguments[0], arguments[1]).is_true());
  const cel::List& list = arguments[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == kMaxIncluded)
      return cel::Value::error(cat("'includes' function cannot be applied to lists longer than ",
                                   kMaxIncluded, " values"));
    if (cel::equal(list.at(i), arguments[1]).is_true()) return cel::Value::boolean(true);
  }
  return cel::Value::boolean(false);
}

/// What distinguishes one language from another.
struct Features {
  int library = 0;
  int release = 0;
  bool multiple_allocations = false;
  bool lists = false;
  bool includes = false;
  bool bounded_includes = false;
  friend auto operator<=>(const Features&, const Features&) = default;
};

Features features_of(const SelectorEnvironment& environment) {
  const int release = environment.release;
  Features made;
  made.library = environment.stored ? release : release - 1;
  made.release = release;
  made.multiple_allocations = release >= kConsumableCapacitySince &&
                              (environment.stored || environment.consumable_capacity);
  made.lists = attributes_are_dyn(environment);
  made.includes = release >= kListsSince && (environment.stored || environment.list_attributes);
  made.bounded_includes = release < kIncludesInBaseSince;
  return made;
}

std::unique_ptr<cel::Environment> make(const Features& features) {
  auto made = std::make_unique<cel::Environment>(
      cel::kubernetes_environment(features.library, features.release));
  cel::add_bindings(*made);
  if (features.library < kSemverInBaseSince) cel::add_semver(*made, 0);
  std::map<std::string, cel::Type> fields = {
      {"driver", cel::TypeKind::string},
      {"attributes", cel::Type::parse(features.lists ? "map(string, map(string, dyn))"
                                                     : "map(string, map(string, any))")},
      {"capacity", cel::Type::parse("map(string, map(string, kubernetes.Quantity))")}};
  if (features.multiple_allocations)
    fields.emplace("allowMultipleAllocations", cel::TypeKind::boolean);
  made->object(kDeviceType, std::move(fields));
  made->variable("device", {cel::TypeKind::object, kDeviceType});
  if (features.includes && made->find_function("includes") == nullptr) {
    if (features.bounded_includes)
      made->function("includes", {{".dyn, dyn -> bool", includes}});
    else
      cel::add_includes(*made);
  }
  return made;
}

/// The declared type at a place in the device.
enum class Part : char {
  none,
  device,
  driver,
  flag,
  attribute_domains,
  attribute_names,
  attribute,
  capacity_domains,
  capacity_names,
  quantity,
  domain,
  id,
};

Part below(Part part, std::string_view step) {
  const bool value = step == "@values" || step == "@items";
  const bool key = step == "@keys";
  switch (part) {
    case Part::device:
      return step == "driver"                     ? Part::driver
             : step == "attributes"               ? Part::attribute_domains
             : step == "capacity"                 ? Part::capacity_domains
             : step == "allowMultipleAllocations" ? Part::flag
                                                  : Part::none;
    case Part::attribute_domains:
      return value ? Part::attribute_names : key ? Part::domain : Part::none;
    case Part::attribute_names:
      return key ? Part::id : Part::attribute;
    case Part::capacity_domains:
      return value ? Part::capacity_names : key ? Part::domain : Part::none;
    case Part::capacity_names:
      return value ? Part::quantity : key ? Part::id : Part::none;
    default:
      return Part::none;
  }
}

std::optional<std::uint64_t> bound_of(Part part) {
  switch (part) {
    case Part::driver:
    case Part::domain:
      return 63;
    case Part::id:
    case Part::attribute_domains:
    case Part::attribute_names:
    case Part::capacity_domains:
    case Part::capacity_names:
      return 32;
    case Part::attribute:
      return 64;
    case Part::flag:
      return 1;
    case Part::device:
    case Part::quantity:
      return 0;
    case Part::none:
      break;
  }
  return std::nullopt;
}

}  // namespace

bool attributes_are_dyn(const SelectorEnvironment& environment) {
  if (environment.release < kListsSince) return false;
  return environment.list_attributes ||
         (environment.stored && environment.release >= kIncludesInBaseSince);
}

bool is_selector_type(const cel::Type& type, const SelectorEnvironment& environment) {
  if (type.is(cel::TypeKind::boolean)) return true;
  const bool lists = attributes_are_dyn(environment);
  if (type.is(cel::TypeKind::dyn)) return lists;
  return type.is(cel::TypeKind::any) && (!lists || environment.release < kIncludesInBaseSince);
}

std::optional<std::uint64_t> device_size_bound(const cel::ValuePath& path, int release) {
  if (release < kSizesSince || path.empty() || path[0] != "device") return std::nullopt;
  Part part = Part::device;
  for (std::size_t i = 1; i < path.size(); ++i) part = below(part, path[i]);
  return bound_of(part);
}

const cel::Environment& selector_language(const SelectorEnvironment& environment) {
  static Mutex mutex;
  static std::map<Features, std::unique_ptr<const cel::Environment>> made DIBS_GUARDED_BY(mutex);
  const Features features = features_of(environment);
  const MutexLock lock(mutex);
  std::unique_ptr<const cel::Environment>& slot = made[features];
  if (slot == nullptr) slot = make(features);
  return *slot;
}

}  // namespace dibs::api
