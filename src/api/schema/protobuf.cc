#include "api/schema/protobuf.h"

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
using wire::Item;
using wire::Type;

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kMaxDepth = 100;

Error broken() { return Error::bad_request("unexpected EOF in protobuf"); }

Error wrong_type(const Item& item) {
  return Error::bad_request(
      cat("proto: wrong wireType = ", static_cast<int>(item.type), " for field ", item.number));
}

const Field* field_numbered(const Schema& schema, std::uint32_t number) {
  auto it = std::lower_bound(
      schema.wire.begin(), schema.wire.end(), number,
      [&](std::uint16_t i, std::uint32_t n) { return schema.fields[i].proto < n; });
  if (it == schema.wire.end() || schema.fields[*it].proto != number) return nullptr;
  return &schema.fields[*it];
}

/// The numbered fields of a message that has only scalars.
struct Small {
  std::uint64_t integers[4] = {};
  std::string_view bytes[4];
  bool present[4] = {};
};

Result<Small> read_small(std::string_view message) {
  Small small;
  Item item;
  while (!message.empty()) {
    if (!wire::take(message, item)) return broken();
    if (item.number >= 4) continue;
    small.present[item.number] = true;
    if (item.type == Type::bytes) {
      small.bytes[item.number] = item.bytes;
    } else {
      small.integers[item.number] = item.integer;
    }
  }
  return small;
}

Result<Value> parse_embedded(std::string_view text) {
  json::ParseOptions options;
  options.max_depth = 1000;
  return json::parse(text, options);
}

class Reader {
 public:
  Result<> message(std::string_view in, const Schema& schema, Value& out, int depth) {
    if (depth > kMaxDepth) return Error::bad_request("protobuf message is nested too deep");
    Item item;
    while (!in.empty()) {
      if (!wire::take(in, item)) return broken();
      if (const Field* field = field_numbered(schema, item.number)) {
        DIBS_CHECK(read_field(item, *field, out, depth));
        continue;
      }
      for (const Inlined& part : schema.inlined) {
        if (part.proto != item.number) continue;
        if (item.type != Type::bytes) return wrong_type(item);
        DIBS_CHECK(message(item.bytes, *part.schema, out, depth + 1));
      }
    }
    return success();
  }

 private:
  Result<> read_field(const Item& item, const Field& field, Value& out, int depth) {
    const Schema& schema = *field.schema;
    if (schema.shape == Shape::list && !schema.wrapped) {
      // Packed numbers come as bytes.
      Value& list = out.mut(field.name);
      bool numeric = schema.element->shape == Shape::int32 ||
                     schema.element->shape == Shape::int64 ||
                     schema.element->shape == Shape::boolean;
      if (numeric && item.type == Type::bytes) {
        std::string_view packed = item.bytes;
        while (!packed.empty()) {
          Item one;
          if (!wire::take_varint(packed, one.integer)) return broken();
          DIBS_TRY(Value value, read_value(one, *schema.element, depth));
          list.push(std::move(value));
        }
        return success();
      }
      DIBS_TRY(Value value, read_value(item, *schema.element, depth));
      list.push(std::move(value));
      return success();
    }
    if (schema.shape == Shape::map) return read_entry(item, schema, out.mut(field.name), depth);
    if (schema.shape == Shape::object) {
      if (item.type != Type::bytes) return wrong_type(item);
      Value& object = out.mut(field.name);
      if (!object.is_object()) object = Value::object();
      return message(item.bytes, schema, object, depth + 1);
    }
    DIBS_TRY(Value value, read_value(item, schema, depth));
    out.set(field.name, std::move(value));
    return success();
  }

  Result<> read_entry(const Item& item, const Schema& schema, Value& map, int depth) {
    if (item.type != Type::bytes) return wrong_type(item);
    std::string_view in = item.bytes;
    std::string_view key;
    Value value;
    bool present = false;
    Item part;
    while (!in.empty()) {
      if (!wire::take(in, part)) return broken();
      if (part.number == 1 && part.type == Type::bytes) key = part.bytes;
      if (part.number == 2) {
        DIBS_TRY(value, read_value(part, *schema.element, depth + 1));
        present = true;
      }
    }
    if (!present) {
      Item nothing;
      nothing.type = Type::bytes;
      bool numeric = schema.element->shape == Shape::int32 ||
                     schema.element->shape == Shape::int64 ||
                     schema.element->shape == Shape::boolean;
      if (numeric) nothing.type = Type::varint;
      DIBS_TRY(value, read_value(nothing, *schema.element, depth + 1));
    }
    map.set(key, std::move(value));
    return success();
  }

  Result<Value> read_value(const Item& item, const Schema& schema, int depth) {
    bool is_bytes = item.type == Type::bytes;
    switch (schema.shape) {
      case Shape::boolean:
        if (is_bytes) return wrong_type(item);
        return Value(item.integer != 0);
      case Shape::int32:
        if (is_bytes) return wrong_type(item);
        return Value(static_cast<int>(static_cast<std::int32_t>(item.integer)));
      case Shape::int64:
        if (is_bytes) return wrong_type(item);
        return Value(static_cast<long>(static_cast<std::int64_t>(item.integer)));
      case Shape::number: {
        if (item.type != Type::fixed64) return wrong_type(item);
        double number = 0;
        std::memcpy(&number, &item.integer, sizeof number);
        return Value(number);
      }
      default:
        break;
    }
    if (!is_bytes) return wrong_type(item);
    switch (schema.shape) {
      case Shape::string:
        return Value(item.bytes);
      case Shape::bytes:
        return Value(base64_encode(item.bytes));
      case Shape::object: {
        Value object = Value::object();
        DIBS_CHECK(message(item.bytes, schema, object, depth + 1));
        return object;
      }
      case Shape::list:
        return read_wrapped(item, schema, depth);
      case Shape::any:
        return read_any(item, schema, depth);
      default:
        return read_special(item, schema);
    }
  }

  Result<Value> read_wrapped(const Item& item, const Schema& schema, int depth) {
    Value list = Value::array();
    std::string_view in = item.bytes;
    Item part;
    while (!in.empty()) {
      if (!wire::take(in, part)) return broken();
      if (part.number != 1) continue;
      DIBS_TRY(Value value, read_value(part, *schema.element, depth + 1));
      list.push(std::move(value));
    }
    return list;
  }

  Result<Value> read_special(const Item& item, const Schema& schema) {
    DIBS_TRY(Small small, read_small(item.bytes));
    auto integer = [&](int i) { return static_cast<std::int64_t>(small.integers[i]); };
    switch (schema.shape) {
      case Shape::quantity:
        return small.bytes[1].empty() ? Value("0") : Value(small.bytes[1]);
      case Shape::int_or_string:
        if (integer(1) == 1) return Value(small.bytes[3]);
        return Value(static_cast<int>(static_cast<std::int32_t>(integer(2))));
      case Shape::time:
      case Shape::micro_time: {
        if (!small.present[1] && !small.present[2]) return Value();
        std::int64_t seconds = integer(1);
        if (seconds < Moment::kFirst || seconds > Moment::kLast) {
          return Error::bad_request("time out of range");
        }
        std::int64_t nanos = schema.shape == Shape::micro_time ? integer(2) : 0;
        if (nanos < 0 || nanos >= 1'000'000'000) nanos = 0;
        return Value(format_moment({seconds, nanos}, schema.shape == Shape::micro_time));
      }
      case Shape::duration:
        return Value(format_duration(Duration(integer(1))));
      case Shape::fields_v1:
        if (small.bytes[1].empty()) return Value();
        return parse_embedded(small.bytes[1]);
      default:
        return Error::internal("shape without a message");
    }
  }

  Result<Value> read_any(const Item& item, const Schema& schema, int depth) {
    if (schema.element != nullptr) return read_union(item, schema, depth);
    DIBS_TRY(Small small, read_small(item.bytes));
    std::string_view raw = small.bytes[1];
    if (raw.empty()) return Value();
    if (!is_protobuf(raw)) return parse_embedded(raw);
    DIBS_TRY(ProtobufEnvelope envelope, open_envelope(raw));
    GroupVersionKind gvk;
    std::size_t slash = envelope.api_version.find('/');
    gvk.group = slash == std::string::npos ? "" : envelope.api_version.substr(0, slash);
    gvk.version =
        slash == std::string::npos ? envelope.api_version : envelope.api_version.substr(slash + 1);
    const Schema* inner = builtin_schema(gvk.group, gvk.version, envelope.kind);
    if (inner == nullptr)
      return Error::bad_request(cat("no kind ", quoted(envelope.kind), " is known"));
    Value object = Value::object(
        {{"apiVersion", Value(envelope.api_version)}, {"kind", Value(envelope.kind)}});
    DIBS_CHECK(message(envelope.raw, *inner, object, depth + 1));
    return object;
  }

  Result<Value> read_union(const Item& item, const Schema& schema, int depth) {
    std::uint32_t schema_number = schema.any_form == AnyForm::schema_or_bool ? 2 : 1;
    Value result = schema.any_form == AnyForm::schema_or_bool ? Value(false) : Value();
    std::string_view in = item.bytes;
    Item part;
    while (!in.empty()) {
      if (!wire::take(in, part)) return broken();
      if (part.number == schema_number && part.type == Type::bytes) {
        result = Value::object();
        DIBS_CHECK(message(part.bytes, *schema.element, result, depth + 1));
      } else if (schema.any_form == AnyForm::schema_or_bool) {
        if (part.number == 1 && !result.is_object()) result = Value(part.integer != 0);
      } else if (part.number == 2 && part.type == Type::bytes) {
        if (schema.any_form == AnyForm::schema_or_strings) {
          result.push(Value(part.bytes));
        } else {
          Value one = Value::object();
          DIBS_CHECK(message(part.bytes, *schema.element, one, depth + 1));
          result.push(std::move(one));
        }
      }
    }
    return result;
  }
};

}  // namespace

bool is_protobuf(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<ProtobufEnvelope> open_envelope(std::string_view bytes) {
  if (!is_protobuf(bytes)) {
    return Error::bad_request(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  }
  ProtobufEnvelope envelope;
  std::string_view in = bytes.substr(kMagic.size());
  Item item;
  while (!in.empty()) {
    if (!wire::take(in, item)) return broken();
    if (item.type != Type::bytes) continue;
    if (item.number == 1) {
      DIBS_TRY(Small meta, read_small(item.bytes));
      envelope.api_version = meta.bytes[1];
      envelope.kind = meta.bytes[2];
    } else if (item.number == 2) {
      envelope.raw = item.bytes;
    }
  }
  return envelope;
}

Result<Value> decode_protobuf(std::string_view message, const Schema& schema) {
  Value out = Value::object();
  DIBS_CHECK(Reader().message(message, schema, out, 0));
  return out;
}

}  // namespace dibs::api
