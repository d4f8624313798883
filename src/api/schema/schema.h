#pragma once
// What an object is made of: one description for built-in kinds and custom resources.
//
// From a Schema follow strict decoding and pruning, normal form, defaults, OpenAPI, strategic
// merge, server-side apply, protobuf. Built-in schemas are text under schema/, compiled into the
// binary and read at start (builtin.h); those of custom resources are built at run time
// (structural.h). A Schema is immutable once built and shared.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::api {

/// The form of a value in JSON.
enum class Shape : std::uint8_t {
  string,
  bytes,  // base64
  boolean,
  int32,
  int64,
  number,  // double
  object,  // fields
  list,    // of element
  map,     // string to element
  any,     // whatever JSON it is (RawExtension, JSON, JSONSchemaProps unions)
  quantity,
  int_or_string,
  time,        // RFC 3339, whole seconds
  micro_time,  // RFC 3339, six decimals
  duration,    // Go duration string
  fields_v1,   // the set of managedFields
};

enum class ListType : std::uint8_t { atomic, set, map };

struct Schema;
struct Rules;     // keywords of custom resources beyond the type; structural.h
struct Declared;  // rules that the API declares beside a field; declared.h

/// A field's protobuf side and how Go writes its zero value.
enum class Zero : std::uint8_t {
  omit,  // left out when zero or empty
  keep,  // always written ("", 0, null list, {} struct)
};

struct Field {
  std::string name;
  const Schema* schema = nullptr;
  std::uint32_t proto = 0;  // 0: not on the wire
  bool required = false;
  bool pointer = false;  // a pointer in Go: a zero value that is present stays
  Zero zero = Zero::omit;
  std::optional<json::Value> default_value;  // a constant default of the API
  // Strategic merge.
  std::string merge_key;  // of a list with strategy merge; "" for lists of scalars
  bool merge = false;
  bool retain_keys = false;
  /// Go's name of the embedded struct that holds it ("ProbeHandler"), for messages.
  std::string embedded;
  /// Go's name of the field, where it is not ours with a capital letter: "CEL".
  std::string go_name;
  /// The gates that keep it out of objects that do not have it yet, unless all are on.
  std::vector<std::string> gates;
  std::shared_ptr<const Declared> declared;  // null: none
};

/// A sub-message whose fields stand in the JSON object of the message that holds it.
struct Inlined {
  std::uint32_t proto = 0;
  const Schema* schema = nullptr;
};

/// What Shape::any stands for.
enum class AnyForm : std::uint8_t {
  json,              // any JSON
  raw,               // an object, RawExtension
  schema_or_array,   // of `element`
  schema_or_bool,    // of `element`
  schema_or_strings  // of `element`
};

struct Schema {
  Shape shape = Shape::object;
  /// Of a struct: "PodSpec" in Go's words, for messages; and its OpenAPI name,
  /// "io.k8s.api.core.v1.PodSpec".
  std::string name;
  std::string full_name;
  /// Go's word for the type in messages: "v1.PodSpec", "[]v1.Container", "v1.PullPolicy", "int32".
  std::string go_type;
  std::vector<Field> fields;        // of an object, sorted by name
  const Schema* element = nullptr;  // of a list or map
  ListType list_type = ListType::atomic;
  std::vector<std::string> map_keys;  // of ListType::map
  bool atomic = false;                // of a map or object: owned as a whole by server-side apply
  std::vector<std::string> enum_values;
  AnyForm any_form = AnyForm::json;
  // Built-in kinds only.
  std::vector<Inlined> inlined;       // on the wire
  bool wrapped = false;               // a list that is a message {1: items} on the wire
  std::vector<std::uint16_t> wire;    // indices into fields, sorted by proto; those on the wire
  std::vector<std::uint16_t> kept;    // indices of the fields with Zero::keep
  json::Value empty;                  // of an object: its normal form when nothing is set
  std::vector<std::uint16_t> stated;  // indices of all fields, in the order of the text
  bool may_default = true;            // false: no default_value in it or below
  bool judged = false;                // rules are declared in it or below
  bool gated = false;                 // fields in it or below have gates
  // Custom resources only.
  bool preserve_unknown = false;
  bool embedded_resource = false;
  bool nullable = false;
  std::shared_ptr<const Rules> rules;

  const Field* field(std::string_view name) const;
  /// Makes field() find names by a hash. To be called when the fields are complete and sorted;
  /// without it they are found all the same.
  void index_fields();

 private:
  std::vector<std::uint16_t> slots_;  // places in fields, plus one; 0 is free
};

}  // namespace dibs::api
