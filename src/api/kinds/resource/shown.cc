// Objects as the API's own structures write themselves.
//
// Some messages show a whole object, and upstream shows its internal form there: names as in its
// sources, every member whether set or not. A table of those structures makes that form of ours.
#include <map>
#include <utility>

#include "api/kinds/metadata.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/resource/checks.h"
#include "api/kinds/resource/declared.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

// A structure and its members: shown name, our name where it is not the same in lower case, kind.
// Kinds: s text, i number, r as it stands, a capital letter a structure; "*" may be null, "[]" a
// list. A line that begins with a blank goes on.
constexpr std::string_view kTable = R"(
TemplateSpec Spec:ClaimSpec
ClaimSpec Devices:DeviceClaim
DeviceClaim Requests:[]Request Constraints:[]Constraint Config:[]ClaimConfig
Request Name:s Exactly:*Exact FirstAvailable:[]Sub
Exact DeviceClassName:s Selectors:[]Selector AllocationMode:s Count:i AdminAccess:*r
 Tolerations:[]Toleration Capacity:*Capacity DerivedAttributes:[]Derived
Sub Name:s DeviceClassName:s Selectors:[]Selector AllocationMode:s Count:i
 Tolerations:[]Toleration Capacity:*Capacity DerivedAttributes:[]Derived
Selector CEL:*Cel
Cel Expression:s
Toleration Key:s Operator:s Value:s Effect:s TolerationSeconds:*r
Capacity Requests:r
Derived Name:s Expression:s
Constraint Requests:r MatchAttribute:*r DistinctAttribute:*r
ClaimConfig Requests:r Opaque:*Opaque
Opaque Driver:s Parameters:r
Allocation Devices:AllocatedDevices NodeSelector:*NodeSelector AllocationTimestamp:*r
AllocatedDevices Results:[]Result Config:[]AllocationConfig
Result Request:s Driver:s Pool:s Device:s AdminAccess:*r Tolerations:[]Toleration
 BindingConditions:r BindingFailureConditions:r ShareID:*r ConsumedCapacity:r SkipNodeOperations:r
AllocationConfig Source:s Requests:r Opaque:*Opaque
NodeSelector NodeSelectorTerms:[]Term
Term MatchExpressions:[]Requirement MatchFields:[]Requirement
Requirement Key:s Operator:s Values:r
Attribute IntValue=int:*r BoolValue=bool:*r StringValue=string:*r VersionValue=version:*r
 IntValues=ints:r BoolValues=bools:r StringValues=strings:r VersionValues=versions:r
PoolStatuses PoolCount:*r Pools:[]Pool Conditions:r
Pool Driver:s PoolName:s Generation:i ResourceSliceCount:*r TotalDevices:*r AllocatedDevices:*r
 AvailableDevices:*r UnavailableDevices:*r NodeName:*r ValidationError:*r
 PartitionSummary:[]Partition ShareableSummary:*Shareable
Partition Attribute:s Type:s Total:*r Allocatable:*r
Shareable FullyAvailableDevices:*r PartiallyAvailableDevices:*r Capacity:[]ShareableCapacity
ShareableCapacity Name:s Total:*r Consumed:*r Available:*r
)";

struct Member {
  std::string shown;
  std::string name;
  bool list = false;
  bool pointer = false;
  std::string kind;
};

using Structures = std::map<std::string, std::vector<Member>, std::less<>>;

std::string our_name(std::string_view shown) {
  if (shown == "CEL") return "cel";
  std::string name(shown);
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return name;
}

Structures parse_table() {
  Structures structures;
  std::vector<Member>* members = nullptr;
  for (std::string_view line : split(kTable, '\n')) {
    if (line.empty()) continue;
    bool begins = line.front() != ' ';
    for (std::string_view word : split(trim(line), ' ')) {
      if (std::exchange(begins, false)) {
        members = &structures[std::string(word)];
        continue;
      }
      auto colon = word.find(':');
      std::string_view label = word.substr(0, colon);
      std::string_view kind = word.substr(colon + 1);
      auto equals = label.find('=');
      Member member;
      member.shown = label.substr(0, equals);
      member.name = equals == std::string_view::npos ? our_name(label)
                                                     : std::string(label.substr(equals + 1));
      if (kind.substr(0, 2) == "[]") {
        member.list = true;
        kind.remove_prefix(2);
      } else if (kind.front() == '*') {
        member.pointer = true;
        kind.remove_prefix(1);
      }
      member.kind = kind;
      members->push_back(std::move(member));
    }
  }
  return structures;
}

Value shown(std::string_view structure, const Value& value);

// Members that came with 1.37; older releases show none of them.
void drop_newer(Value& value) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) drop_newer(value.mut(i));
    return;
  }
  if (!value.is_object()) return;
  value.erase("DerivedAttributes");
  value.erase("SkipNodeOperations");
  for (const char* key : {"Spec", "Devices", "Requests", "Exactly", "FirstAvailable", "Results"}) {
    if (!value[key].empty()) drop_newer(value.mut(key));
  }
}

Value of_release(Value value, const Features& features) {
  if (features.minor() < 37) drop_newer(value);
  return value;
}

Value shown_member(const Member& member, const Value& value) {
  if (member.list) {
    if (value.is_null() || value.empty()) return nullptr;
    Value list = Value::array();
    for (const Value& item : value.items()) list.push(shown(member.kind, item));
    return list;
  }
  if (member.pointer && value.is_null()) return nullptr;
  if (member.kind == "s") return Value(value.as_string());
  if (member.kind == "i") return Value(value.as_int());
  if (member.kind == "r") return value;
  return shown(member.kind, value);
}

Value shown(std::string_view structure, const Value& value) {
  static const Structures structures = parse_table();
  Value out = Value::object();
  for (const Member& member : structures.find(structure)->second) {
    out.set(member.shown, shown_member(member, value[member.name]));
  }
  return out;
}

}  // namespace

Value shown_template_spec(const Value& spec, const Features& features) {
  Value out = Value::object();
  // What a template's metadata may hold comes first, under its own names.
  for (const char* key : {"labels", "annotations"}) {
    if (!spec["metadata"][key].empty()) {
      Value map = Value::object();
      for (const std::string& name : sorted_keys(spec["metadata"][key])) {
        map.set(name, spec["metadata"][key][name]);
      }
      out.set(key, std::move(map));
    }
  }
  out.set("Spec", shown("ClaimSpec", spec["spec"]));
  return of_release(std::move(out), features);
}

Value shown_claim_spec(const Value& spec, const Features& features) {
  return of_release(shown("ClaimSpec", spec), features);
}

Value shown_allocation(const Value& allocation, const Features& features) {
  return of_release(shown("Allocation", allocation), features);
}

Value shown_attribute(const Value& attribute) { return shown("Attribute", attribute); }

Value shown_terms(const Value& terms) {
  if (terms.is_null() || terms.empty()) return nullptr;
  Value list = Value::array();
  for (const Value& term : terms.items()) list.push(shown("Term", term));
  return list;
}

Value shown_pool_status(const Value& status) {
  Value out = shown("PoolStatuses", status);
  out.set("Conditions", in_api_order(status["conditions"]));
  return out;
}

}  // namespace dibs::api
