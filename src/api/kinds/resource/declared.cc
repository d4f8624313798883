#include "api/kinds/resource/declared.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "api/kinds/metadata.h"
#include "api/kinds/resource/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

// One line per field that has a rule of its own or leads to one: its name, its type ("[]" a list,
// "{}" a map, "*" may be null; a capital letter names another entry), and the rules, which may go
// on in a line that is further in.
constexpr std::string_view kTable = R"(
ResourceClaim
  spec ResourceClaimSpec immutable
  status ResourceClaimStatus
ResourceClaimTemplate
  spec ResourceClaimTemplateSpec
ResourceClaimTemplateSpec
  spec ResourceClaimSpec
ResourceClaimSpec
  devices DeviceClaim
DeviceClaim
  requests []DeviceRequest optional items=32 unique=name
  constraints []DeviceConstraint optional items=32
  config []DeviceConfiguration optional items=32
DeviceRequest
  exactly *DeviceRequestBody optional
  firstAvailable []DeviceSubRequest optional items=8 unique=name
DeviceRequestBody
  selectors []string optional items=32
  allocationMode string optional enum=All,ExactCount
  tolerations []DeviceToleration optional
  derivedAttributes []DeviceDerivedAttribute optional items=32
DeviceSubRequest
  deviceClassName string required format=long-name
  selectors []string optional items=32
  allocationMode string optional enum=All,ExactCount
  tolerations []DeviceToleration optional
  derivedAttributes []DeviceDerivedAttribute optional items=32
DeviceDerivedAttribute
  name string required format=fully-qualified
  expression string required
DeviceConstraint
  requests []string optional items=32 unique=
  matchAttribute *string optional format=fully-qualified
  distinctAttribute *string optional format=fully-qualified
DeviceConfiguration
  requests []string optional items=32 unique=
  opaque *OpaqueDeviceConfiguration optional
AllocationConfiguration
  source string required enum=FromClaim,FromClass
  requests []string optional items=32 unique=
  opaque *OpaqueDeviceConfiguration optional
OpaqueDeviceConfiguration
  driver string required format=caseless length=63
DeviceToleration
  key string optional format=label-key
  operator string optional enum=Equal,Exists
  effect string optional enum=NoExecute,NoSchedule,None
ResourceClaimStatus
  allocation *AllocationResult optional kept
  reservedFor []any optional items=256 unique=uid
  devices []AllocatedDeviceStatus optional unique=driver,device,pool,shareID
AllocationResult
  devices DeviceAllocationResult
DeviceAllocationResult
  results []DeviceRequestAllocationResult optional items=32
  config []AllocationConfiguration optional items=64
DeviceRequestAllocationResult
  driver string required format=caseless length=63
  pool string required format=pool-name
  tolerations []DeviceToleration optional
  bindingConditions []string optional items=4
  bindingFailureConditions []string optional items=4
  shareID *string optional format=uuid
  skipNodeOperations []string optional unique=
    each-enum=*,NodePrepareResources,NodeUnprepareResources
AllocatedDeviceStatus
  shareID *string optional format=uuid
  networkData *NetworkDeviceData optional
NetworkDeviceData
  interfaceName string optional bytes=256
  ips []string optional items=16 unique=
  hardwareAddress string optional bytes=128
DeviceClass
  spec DeviceClassSpec
DeviceClassSpec
  selectors []any optional items=32
  config []DeviceConfiguration optional items=32
  extendedResourceName *string optional format=extended-resource
ResourceSlice
  spec ResourceSliceSpec
ResourceSliceSpec
  devices []Device optional
  sharedCounters []CounterSet optional items=8 unique=name
  partitionTypeAttribute *string optional
    forbidden-without=DRAPartitionableDevicesType format=fully-qualified
  skipNodeOperations []string optional unique=
    each-enum=*,NodePrepareResources,NodeUnprepareResources
CounterSet
  name string required format=short-name
  counters {}any required keys=short-name
Device
  attributes {}DeviceAttribute optional
  consumesCounters []DeviceCounterConsumption optional items=2 unique=counterSet
  taints []DeviceTaint optional
  bindingConditions []string optional items=4
  bindingFailureConditions []string optional items=4
  nodeAllocatableResources {}NodeAllocatableResource optional
NodeAllocatableResource
  mapping *NodeAllocatableMapping optional
NodeAllocatableMapping
  capacityKey *string optional union
  deviceMultiplier *string optional union
DeviceCounterConsumption
  counterSet string required format=short-name
  counters {}any required keys=short-name
  compatibilityGroups []string optional items=2 unique= each-format=short-name
DeviceAttribute
  int *any optional union
  bool *any optional union
  string *any optional union
  version *any optional union
  ints []any optional union
  bools []any optional union
  strings []any optional union
  versions []any optional union
DeviceTaint
  effect string required enum=NoExecute,NoSchedule,None
DeviceTaintRule
  spec DeviceTaintRuleSpec
DeviceTaintRuleSpec
  taint DeviceTaint
ResourcePoolStatusRequest
  spec ResourcePoolStatusRequestSpec immutable
  status *ResourcePoolStatusRequestStatus optional
ResourcePoolStatusRequestSpec
  driver string required format=caseless
  poolName *string optional format=pool-name
  limit *int optional min=1 max=1000
  defaultPartitionTypeAttribute *string optional
    forbidden-without=DRAPartitionableDevicesType format=fully-qualified
ResourcePoolStatusRequestStatus
  poolCount *int required min=0
  pools []PoolStatus optional items=1000
  conditions []any optional items=10
PoolStatus
  driver string required format=caseless
  poolName string required format=pool-name
  generation int required min=0
  resourceSliceCount *int optional min=1
  totalDevices *int optional min=0
  allocatedDevices *int optional min=0
  availableDevices *int optional min=0
  unavailableDevices *int optional min=0
  nodeName *string optional format=long-name
  validationError *string optional bytes=256
  partitionSummary []PartitionTypeStatus optional items=32 unique=attribute,type
  shareableSummary *ShareableSummaryStatus optional
PartitionTypeStatus
  attribute string required
  type string required
  total *int required min=0
  allocatable *int required min=0
ShareableSummaryStatus
  fullyAvailableDevices *int required min=0
  partiallyAvailableDevices *int required min=0
  capacity []ShareableCapacityStatus optional items=32
ShareableCapacityStatus
  name string required
  total *any required
  consumed *any required
  available *any required
)";

struct Rule {
  std::string name;
  std::string argument;
};

enum class Shape : char { single, list, map };

struct Field {
  std::string name;
  Shape shape = Shape::single;
  bool pointer = false;
  bool structure = false;
  std::string type;
  std::vector<Rule> rules;
};

struct Type {
  std::vector<Field> fields;
  std::vector<std::string> members;  // of its union
};

using Types = std::map<std::string, Type, std::less<>>;

void add_rule(Field& field, std::string_view text) {
  auto equals = text.find('=');
  std::string_view argument =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  field.rules.push_back({std::string(text.substr(0, equals)), std::string(argument)});
}

Field parse_field(std::string_view line) {
  Field field;
  std::size_t word = 0;
  for (std::string_view piece : split(line, ' ')) {
    if (word == 0) {
      field.name = piece;
    } else if (word == 1) {
      if (piece.front() == '*') {
        field.pointer = true;
        piece.remove_prefix(1);
      }
      if (piece.substr(0, 2) == "[]") field.shape = Shape::list;
      if (piece.substr(0, 2) == "{}") field.shape = Shape::map;
      if (field.shape != Shape::single) piece.remove_prefix(2);
      field.structure = piece.front() >= 'A' && piece.front() <= 'Z';
      field.type = piece;
    } else {
      add_rule(field, piece);
    }
    ++word;
  }
  return field;
}

Types parse_table() {
  Types types;
  Type* current = nullptr;
  for (std::string_view line : split(kTable, '\n')) {
    if (line.empty()) continue;
    if (line.front() != ' ') {
      current = &types[std::string(line)];
      continue;
    }
    if (line.substr(0, 4) == "    ") {
      for (std::string_view piece : split(trim(line), ' ')) {
        add_rule(current->fields.back(), piece);
      }
      continue;
    }
    Field field = parse_field(trim(line));
    for (const Rule& rule : field.rules) {
      if (rule.name == "union") current->members.push_back(field.name);
    }
    current->fields.push_back(std::move(field));
  }
  return types;
}

const Types& types() {
  static const Types table = parse_table();
  return table;
}

bool is_empty(const Field& field, const Value& value) {
  if (value.is_null()) return true;
  if (field.shape != Shape::single) return value.empty();
  if (field.pointer) return false;
  if (value.is_string()) return value.as_string().empty();
  return value.is_number() && value.as_int() == 0;
}

std::int64_t number(const std::string& text) { return std::stoll(text); }

class Walk {
 public:
  Walk(DeclaredForm form, const Features& features, FieldErrors& errors)
      : form_(form), features_(features), errors_(errors) {}

  void structure(std::string_view name, const Value& value, const Value* old, const Path& path) {
    auto found = types().find(name);
    if (found == types().end()) return;
    check_union(found->second, value, old, path);
    for (const Field& field : found->second.fields) {
      const Value& member = value[field.name];
      const Value* before = old == nullptr ? nullptr : &(*old)[field.name];
      if (before != nullptr && same(member, *before)) continue;
      // v1beta1 has no `exactly`, and keeps all of a device but its name under `basic`.
      if (form_.v1beta1 && field.name == "exactly") {
        judge(field, member, before, path);
      } else if (form_.v1beta1 && name == "Device") {
        Path basic = path.child("basic");
        judge(field, member, before, basic.child(field.name));
      } else {
        judge(field, member, before, path.child(field.name));
      }
    }
  }

 private:
  // An absent list and an empty one are the same.
  static bool same(const Value& a, const Value& b) {
    bool a_empty = a.is_null() || ((a.is_array() || a.is_object()) && a.empty());
    bool b_empty = b.is_null() || ((b.is_array() || b.is_object()) && b.empty());
    return (a_empty && b_empty && !a.is_object() && !b.is_object()) || a == b;
  }

  void check_union(const Type& type, const Value& value, const Value* old, const Path& path) {
    if (type.members.empty()) return;
    std::vector<std::string> set;
    std::vector<std::string> all;
    bool changed = old == nullptr;
    for (const std::string& member : type.members) {
      all.push_back(cat("`", member, "`"));
      bool is = !value[member].is_null();
      if (is) set.push_back(member);
      if (old != nullptr) changed = changed || is == (*old)[member].is_null();
    }
    if (!changed) return;
    if (set.empty()) {
      errors_.invalid(path, "", cat("must specify one of: ", join(all, ", ")));
    } else if (set.size() > 1) {
      errors_.invalid(path, cat("{", join(set, ", "), "}"),
                      cat("must specify exactly one of: ", join(all, ", ")));
    }
  }

  // Rules that end the judgement of a field come before the others.
  bool goes_on(const Field& field, const Value& value, const Value* old, const Path& path) {
    bool on = true;
    for (const Rule& rule : field.rules) {
      if (rule.name == "required" && is_empty(field, value)) {
        errors_.required(path);
        on = false;
      } else if (rule.name == "optional" && is_empty(field, value)) {
        return false;
      } else if (rule.name == "forbidden-without" && !features_.on(rule.argument)) {
        errors_.forbidden(path, "");
        on = false;
      } else if (rule.name == "immutable" && old != nullptr) {
        errors_.invalid(path, Value(), "field is immutable");
        on = false;
      } else if (rule.name == "kept" && old != nullptr && !old->is_null()) {
        errors_.invalid(path, Value(), "field cannot be modified once set");
        on = false;
      } else if (rule.name == "items" &&
                 value.size() > static_cast<std::size_t>(number(rule.argument))) {
        errors_.too_many(path, value.size(), static_cast<std::size_t>(number(rule.argument)));
        on = false;
      }
    }
    return on;
  }

  void judge(const Field& field, const Value& value, const Value* old, const Path& path) {
    if (!goes_on(field, value, old, path)) return;
    for (const Rule& rule : field.rules) apply(rule, value, path);
    if (!field.structure) return;
    if (field.shape == Shape::list) {
      each(field, value, old, path);
    } else if (field.shape == Shape::map) {
      for (const std::string& key : sorted_keys(value)) {
        const Value* before = old == nullptr ? nullptr : old->find(key);
        if (before != nullptr && *before == value[key]) continue;
        structure(field.type, value[key], before, path.key(key));
      }
    } else if (!value.is_null()) {
      bool had = old != nullptr && !old->is_null();
      structure(field.type, value, had ? old : nullptr, path);
    }
  }

  void apply(const Rule& rule, const Value& value, const Path& path) {
    std::string_view text = value.as_string();
    if (rule.name == "format") {
      check_declared_format(rule.argument, text, path, errors_);
    } else if (rule.name == "enum") {
      check_enum(rule.argument, value, path);
    } else if (rule.name == "length" && text.size() > 63) {
      std::size_t runes = static_cast<std::size_t>(
          std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
      if (runes > static_cast<std::size_t>(number(rule.argument))) {
        errors_.add(Fault::too_long, path,
                    cat("Too long: may not be more than ", rule.argument, " characters"));
      }
    } else if (rule.name == "bytes" &&
               text.size() > static_cast<std::size_t>(number(rule.argument))) {
      errors_.too_long(path, static_cast<std::size_t>(number(rule.argument)));
    } else if (rule.name == "min" && value.as_int() < number(rule.argument)) {
      errors_.invalid(path, value, cat("must be greater than or equal to ", rule.argument));
    } else if (rule.name == "max" && value.as_int() > number(rule.argument)) {
      errors_.invalid(path, value, cat("must be less than or equal to ", rule.argument));
    } else if (rule.name == "unique") {
      check_unique(rule.argument, value, path);
    } else if (rule.name == "keys") {
      for (const std::string& key : sorted_keys(value)) {
        check_declared_format(rule.argument, key, path, errors_);
      }
    } else if (rule.name == "each-format" || rule.name == "each-enum") {
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (rule.name == "each-enum") {
          check_enum(rule.argument, value[i], path.index(i));
        } else {
          check_declared_format(rule.argument, value[i].as_string(), path.index(i), errors_);
        }
      }
    }
  }

  void check_enum(const std::string& values, const Value& value, const Path& path) {
    std::vector<std::string> supported;
    for (std::string_view one : split(values, ',')) {
      if (one == value.as_string()) return;
      supported.emplace_back(one);
    }
    errors_.not_supported(path, value, supported);
  }

  static bool same_keys(const std::string& keys, const Value& a, const Value& b) {
    if (keys.empty()) return a == b;
    for (std::string_view key : split(keys, ',')) {
      if (a[key].as_string() != b[key].as_string()) return false;
    }
    return true;
  }

  void check_unique(const std::string& keys, const Value& list, const Path& path) {
    for (std::size_t i = 1; i < list.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!same_keys(keys, list[j], list[i])) continue;
        errors_.duplicate(path.index(i), shown(list[i]));
        break;
      }
    }
  }

  Value shown(const Value& item) const {
    if (!form_.v1beta1 || !item.is_object() || !item.contains("name")) return in_api_order(item);
    // A request as v1beta1 writes it: the parts of `exactly` in place of it, the class always.
    Value flat = item;
    if (const Value* exactly = item.find("exactly")) {
      flat = Value::object({{"name", item["name"]}});
      for (const auto& [key, value] : exactly->members()) flat.set(key, value);
      if (item.contains("firstAvailable")) flat.set("firstAvailable", item["firstAvailable"]);
    }
    bool request = item.contains("exactly") || item.contains("firstAvailable");
    if (request && !flat.contains("deviceClassName")) flat.set("deviceClassName", "");
    return in_api_order(flat);
  }

  void each(const Field& field, const Value& list, const Value* old, const Path& path) {
    std::string keys;
    for (const Rule& rule : field.rules) {
      if (rule.name == "unique") keys = rule.argument;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Value* before = nullptr;
      if (old != nullptr) {
        for (const Value& candidate : old->items()) {
          if (!same_keys(keys, candidate, list[i])) continue;
          before = &candidate;
          break;
        }
      }
      if (before != nullptr && *before == list[i]) continue;
      structure(field.type, list[i], before, path.index(i));
    }
  }

  DeclaredForm form_;
  const Features& features_;
  FieldErrors& errors_;
};

// One order serves all structures that messages show, since no two of them disagree.
constexpr std::string_view kOrder[] = {"apiGroup",
                                       "resource",
                                       "name",
                                       "uid",
                                       "counterSet",
                                       "exactly",
                                       "deviceClassName",
                                       "selectors",
                                       "cel",
                                       "allocationMode",
                                       "count",
                                       "adminAccess",
                                       "firstAvailable",
                                       "tolerations",
                                       "capacity",
                                       "derivedAttributes",
                                       "expression",
                                       "key",
                                       "operator",
                                       "value",
                                       "effect",
                                       "tolerationSeconds",
                                       "driver",
                                       "pool",
                                       "device",
                                       "shareID",
                                       "type",
                                       "status",
                                       "observedGeneration",
                                       "lastTransitionTime",
                                       "reason",
                                       "message",
                                       "conditions",
                                       "data",
                                       "networkData",
                                       "interfaceName",
                                       "ips",
                                       "hardwareAddress",
                                       "counters",
                                       "compatibilityGroups"};

std::size_t place(std::string_view key) {
  return static_cast<std::size_t>(std::find(std::begin(kOrder), std::end(kOrder), key) -
                                  std::begin(kOrder));
}

// Maps have keys of their own, which are sorted as text.
bool is_map(std::string_view key) { return key == "counters" || key == "requests"; }

}  // namespace

json::Value in_api_order(const json::Value& value) {
  if (value.is_array()) {
    Value list = Value::array();
    for (const Value& item : value.items()) list.push(in_api_order(item));
    return list;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> keys = sorted_keys(value);
  std::stable_sort(keys.begin(), keys.end(),
                   [](const std::string& a, const std::string& b) { return place(a) < place(b); });
  Value out = Value::object();
  for (const std::string& key : keys) {
    if (key == "data") {
      out.set(key, value[key]);
    } else if (is_map(key)) {
      Value map = Value::object();
      for (const std::string& inner : sorted_keys(value[key])) {
        map.set(inner, value[key][inner]);
      }
      out.set(key, std::move(map));
    } else {
      out.set(key, in_api_order(value[key]));
    }
  }
  return out;
}

void check_declared(std::string_view kind, const json::Value& object, const json::Value* old,
                    DeclaredForm form, const Features& features, FieldErrors& errors) {
  Walk(form, features, errors).structure(kind, object, old, Path());
}

}  // namespace dibs::api
