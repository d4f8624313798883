#include "api/schema/protobuf_encode.h"

#include <algorithm>
#include <cstring>

#include "api/schema/builtin.h"
#include "api/schema/protobuf_wire.h"
#include "base/moment.h"
#include "base/strings.h"
#include "base/time.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

void put_message(std::string& out, const Value& object, const Schema& schema);
std::string message_of(const Value& value, const Schema& schema);

std::string time_message(const Value& value, bool micro) {
  std::string out;
  const auto parsed = parse_moment(value.as_string(), micro);
  if (!parsed.ok()) return out;
  wire::put_integer(out, 1, parsed->seconds);
  wire::put_integer(out, 2, micro ? parsed->nanoseconds : 0);
  return out;
}

std::string union_message(const Value& value, const Schema& schema) {
  std::string out;
  bool or_bool = schema.any_form == AnyForm::schema_or_bool;
  if (or_bool) wire::put_integer(out, 1, value.is_object() || value.as_bool());
  if (value.is_object()) wire::put_bytes(out, or_bool ? 2 : 1, message_of(value, *schema.element));
  for (const Value& item : value.items()) {
    wire::put_bytes(
        out, 2,
        item.is_string() ? std::string(item.as_string()) : message_of(item, *schema.element));
  }
  return out;
}

std::string message_of(const Value& value, const Schema& schema) {
  std::string out;
  switch (schema.shape) {
    case Shape::object:
      put_message(out, value, schema);
      break;
    case Shape::quantity:
      wire::put_bytes(out, 1, value.is_null() ? "0" : value.as_string());
      break;
    case Shape::int_or_string:
      wire::put_integer(out, 1, value.is_string());
      wire::put_integer(out, 2, value.as_int());
      wire::put_bytes(out, 3, value.as_string());
      break;
    case Shape::time:
    case Shape::micro_time:
      out = time_message(value, schema.shape == Shape::micro_time);
      break;
    case Shape::duration:
      if (auto parsed = parse_duration(value.as_string()); parsed.ok())
        wire::put_integer(out, 1, parsed->count());
      break;
    case Shape::fields_v1:
      if (!value.is_null()) wire::put_bytes(out, 1, json::write(value));
      break;
    case Shape::any:
      if (schema.element != nullptr) return union_message(value, schema);
      if (!value.is_null()) wire::put_bytes(out, 1, json::write(value));
      break;
    case Shape::list:
      for (const Value& item : value.items()) wire::put_bytes(out, 1, item.as_string());
      break;
    default:
      break;
  }
  return out;
}

void put_value(std::string& out, std::uint32_t number, const Value& value, const Schema& schema) {
  switch (schema.shape) {
    case Shape::string:
      wire::put_bytes(out, number, value.as_string());
      break;
    case Shape::bytes: {
      std::string bytes;
      base64_decode(value.as_string(), bytes);
      wire::put_bytes(out, number, bytes);
      break;
    }
    case Shape::boolean:
      wire::put_integer(out, number, value.as_bool());
      break;
    case Shape::int32:
    case Shape::int64:
      wire::put_integer(out, number, value.as_int());
      break;
    case Shape::number: {
      double number_value = value.as_double();
      std::uint64_t bits = 0;
      std::memcpy(&bits, &number_value, sizeof bits);
      wire::put_fixed64(out, number, bits);
      break;
    }
    default:
      wire::put_bytes(out, number, message_of(value, schema));
      break;
  }
}

void put_field(std::string& out, const Field& field, const Value& value) {
  const Schema& schema = *field.schema;
  if (schema.shape == Shape::list && !schema.wrapped) {
    for (const Value& item : value.items()) put_value(out, field.proto, item, *schema.element);
    return;
  }
  if (schema.shape == Shape::map) {
    std::vector<std::string_view> keys;
    for (const auto& [key, member] : value.members()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (std::string_view key : keys) {
      std::string entry;
      wire::put_bytes(entry, 1, key);
      put_value(entry, 2, value[key], *schema.element);
      wire::put_bytes(out, field.proto, entry);
    }
    return;
  }
  if (value.is_null() && (field.pointer || schema.shape == Shape::bytes || schema.wrapped)) return;
  put_value(out, field.proto, value, schema);
}

void put_message(std::string& out, const Value& object, const Schema& schema) {
  auto inlined = schema.inlined.begin();
  auto put_inlined = [&](std::uint32_t before) {
    for (; inlined != schema.inlined.end() && inlined->proto < before; ++inlined) {
      std::string part;
      put_message(part, object, *inlined->schema);
      wire::put_bytes(out, inlined->proto, part);
    }
  };
  for (std::uint16_t index : schema.wire) {
    const Field& field = schema.fields[index];
    put_inlined(field.proto);
    put_field(out, field, object[field.name]);
  }
  put_inlined(UINT32_MAX);
}

constexpr std::uint32_t kListMetadata = 1;
constexpr std::uint32_t kListItems = 2;

/// All of an envelope up to the message, which takes so many bytes.
std::string envelope_begin(const Value& object, std::uint64_t message) {
  std::string meta;
  wire::put_bytes(meta, 1, object["apiVersion"].as_string());
  wire::put_bytes(meta, 2, object["kind"].as_string());
  std::string out("k8s\0", 4);
  wire::put_bytes(out, 1, meta);
  wire::put_tag(out, 2, wire::Type::bytes);
  wire::put_varint(out, message);
  return out;
}

void put_envelope_end(std::string& out) {
  wire::put_bytes(out, 3, {});
  wire::put_bytes(out, 4, {});
}

std::string seal(const Value& object, std::string_view message) {
  std::string out = envelope_begin(object, message.size());
  out.reserve(out.size() + message.size() + 8);
  out.append(message);
  put_envelope_end(out);
  return out;
}

const Schema& item_of(const Schema& list) {
  for (const Field& field : list.fields) {
    if (field.proto == kListItems) return *field.schema->element;
  }
  return list;
}

std::string metadata_message(const Value& item) {
  static const Schema& object_meta = *builtin_type("meta/v1.ObjectMeta");
  std::string out;
  wire::put_bytes(out, 1, message_of(item["metadata"], object_meta));
  return out;
}

}  // namespace

std::string encode_envelope(const Value& object, const Schema& schema) {
  return seal(object, message_of(object, schema));
}

std::string encode_metadata_envelope(const Value& object) {
  if (!object.contains("items")) return seal(object, metadata_message(object));
  std::string items;
  for (const Value& item : object["items"].items()) items += encode_list_item(item, nullptr);
  std::string out = encode_list_begin(object, items.size());
  return out.append(items).append(encode_list_end());
}

std::string encode_list_item(const Value& item, const Schema* list) {
  std::string out;
  wire::put_bytes(out, kListItems,
                  list == nullptr ? metadata_message(item) : message_of(item, item_of(*list)));
  return out;
}

std::string encode_list_begin(const Value& frame, std::uint64_t items) {
  static const Schema& list_meta = *builtin_type("meta/v1.ListMeta");
  std::string head;
  wire::put_bytes(head, kListMetadata, message_of(frame["metadata"], list_meta));
  return envelope_begin(frame, head.size() + items).append(head);
}

std::string encode_list_end() {
  std::string out;
  put_envelope_end(out);
  return out;
}

std::string encode_watch_frame(std::string_view type, std::string_view envelope) {
  std::string raw;
  wire::put_bytes(raw, 1, envelope);
  std::string event;
  wire::put_bytes(event, 1, type);
  wire::put_bytes(event, 2, raw);
  const auto size = static_cast<std::uint32_t>(event.size());
  std::string out;
  out.reserve(event.size() + 4);
  for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(size >> shift));
  return out.append(event);
}

}  // namespace dibs::api
