#include "api/schema/decode.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/schema/schema_text.h"
#include "base/moment.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Kind;
using json::Value;

constexpr std::size_t kMaxStrictErrors = 100;
// Only schemas of schemas nest without bound.
constexpr int kMaxDepth = 1000;

/// Where decoding stands: a chain on the stack, spelled only when there is something to tell.
struct Place {
  const Place* parent = nullptr;
  const Field* field = nullptr;    // of a struct's field
  const Schema* holder = nullptr;  // the struct that has the field
  std::string_view key;            // of a map's entry, or an unknown field
  std::size_t index = 0;           // of a list's element
  enum class Form : char { root, field, key, index } form = Form::root;

  /// "spec.containers[0].name"
  void append_path(std::string& out) const {
    if (parent != nullptr) parent->append_path(out);
    if (form == Form::index) append(out, '[', index, ']');
    if (form == Form::root || form == Form::index) return;
    if (!out.empty()) out.push_back('.');
    out.append(form == Form::field ? std::string_view(field->name) : key);
  }

  /// Fields alone, embedded structs among them:
  /// "spec.containers.livenessProbe.ProbeHandler.httpGet".
  void append_fields(std::string& out) const {
    if (parent != nullptr) parent->append_fields(out);
    if (form != Form::field) return;
    if (!out.empty()) out.push_back('.');
    if (!field->embedded.empty()) append(out, field->embedded, '.');
    out.append(field->name);
  }

  /// The innermost struct on the way here, or null at the top.
  const Schema* innermost() const {
    for (const Place* p = this; p != nullptr; p = p->parent) {
      if (p->form == Form::field) return p->holder;
    }
    return nullptr;
  }
};

/// A number as it stood in the document, as far as that can be told.
std::string number_text(const Value& value) {
  std::string text = json::write(value);
  if (value.kind() != Kind::number || text.find_first_of(".eE") != std::string::npos) return text;
  if (text.size() < 17) return text + ".0";
  // Go writes the shortest digits that read back; an integer beyond int64 stood there in full.
  char digits[32];
  auto end =
      std::to_chars(digits, digits + sizeof digits, value.as_double(), std::chars_format::fixed, 0)
          .ptr;
  return std::string(digits, end);
}

/// The place of the first byte that is no base64, as Go counts it.
std::size_t base64_fault(std::string_view text) {
  auto is_digit = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  };
  std::size_t quantum = 0;
  std::size_t at = 0;
  std::size_t count = 0;
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n' || c == '\r') {
      ++at;
      continue;
    }
    if (!is_digit(c)) {
      if (c != '=' || count < 2) return at;
      // Padding: one more where two digits stood, then nothing.
      std::size_t rest = at + 1;
      while (rest < text.size() && (text[rest] == '\n' || text[rest] == '\r')) ++rest;
      if (count == 2) {
        if (rest >= text.size()) return text.size();
        if (text[rest] != '=') return rest;
        ++rest;
        while (rest < text.size() && (text[rest] == '\n' || text[rest] == '\r')) ++rest;
      }
      return rest < text.size() ? rest : quantum;
    }
    if (count == 0) quantum = at;
    count = (count + 1) % 4;
    ++at;
  }
  return quantum;
}

class Decoder {
 public:
  Decoder(bool told, std::vector<std::string>& strict_errors, bool keeps_empty = false)
      : told_(told), keeps_empty_(keeps_empty), strict_errors_(strict_errors) {}

  Result<Value> run(const Value& raw, const Schema& schema) {
    Place root;
    if (!raw.is_object()) {
      if (raw.is_null()) return schema.empty;
      mismatch(root, raw, schema.go_type);
      return std::move(*fault_);
    }
    Value out;
    bool changed = decode_object(raw, schema, root, out);
    if (fault_) return std::move(*fault_);
    return changed ? std::move(out) : raw;
  }

 private:
  // Each decode_…() returns whether the value changed, and then leaves the new one in `out`. A
  // fault that ends decoding sets fatal_; a mismatch of types is noted once and decoding goes on,
  // since a fatal one beats it.

  void mismatch(const Place& place, const Value& value, std::string_view go_type,
                bool with_number = false) {
    if (fault_) return;
    fault_ = Error::bad_request(mismatch_text(place, value, go_type, with_number));
  }

  void fatal_mismatch(const Place& place, const Value& value, std::string_view go_type,
                      bool with_number = false) {
    fault_ = Error::bad_request(mismatch_text(place, value, go_type, with_number));
    fatal_ = true;
  }

  static std::string mismatch_text(const Place& place, const Value& value, std::string_view go_type,
                                   bool with_number) {
    std::string text = cat("json: cannot unmarshal ", json::go_kind(value));
    if (with_number) append(text, ' ', number_text(value));
    const Schema* holder = place.innermost();
    if (holder == nullptr) {
      append(text, " into Go value of type ", go_type);
    } else {
      std::string path;
      place.append_fields(path);
      append(text, " into Go struct field ", holder->name, '.', path, " of type ", go_type);
    }
    return text;
  }

  void fatal(std::string message) {
    fault_ = Error::bad_request(std::move(message));
    fatal_ = true;
  }

  void unknown_field(const Place& place) {
    if (!told_ || strict_errors_.size() >= kMaxStrictErrors) return;
    std::string path;
    place.append_path(path);
    std::string text = cat("unknown field ", quoted(path));
    if (std::find(strict_errors_.begin(), strict_errors_.end(), text) == strict_errors_.end()) {
      strict_errors_.push_back(std::move(text));
    }
  }

  static bool is_zero(const Value& value) {
    switch (value.kind()) {
      case Kind::null:
        return true;
      case Kind::boolean:
        return !value.as_bool();
      case Kind::integer:
        return value.as_int() == 0;
      case Kind::number:
        return value.as_double() == 0;
      case Kind::string:
        return value.as_string().empty();
      default:
        return value.empty();
    }
  }

  /// The normal form of a field's value: absent (false), or `out`.
  enum class Fate : char { same, changed, absent };

  Fate decode_field(const Value& value, const Field& field, const Place& place, Value& out) {
    const Schema& schema = *field.schema;
    if (value.is_null()) {
      if (field.zero == Zero::omit) return Fate::absent;
      if (field.pointer) return Fate::same;
      return zero_or_same(value, schema, out);
    }
    bool changed = decode_value(value, schema, place, out);
    if (field.pointer) return changed ? Fate::changed : Fate::same;
    const Value& now = changed ? out : value;
    bool container = schema.shape == Shape::list || schema.shape == Shape::map;
    if (container && keeps_empty_) return changed ? Fate::changed : Fate::same;
    if (field.zero == Zero::omit) {
      return is_zero(now) && schema.shape != Shape::object ? Fate::absent
             : changed                                     ? Fate::changed
                                                           : Fate::same;
    }
    // Go keeps an empty list apart from none, but the way through the store does not.
    if (container && now.empty()) {
      out = Value();
      return Fate::changed;
    }
    return changed ? Fate::changed : Fate::same;
  }

  static Fate zero_or_same(const Value&, const Schema& schema, Value& out) {
    switch (schema.shape) {
      case Shape::list:
      case Shape::map:
      case Shape::time:
      case Shape::micro_time:
      case Shape::any:
      case Shape::fields_v1:
        return Fate::same;
      default:
        break;
    }
    out = zero_value(schema);
    return Fate::changed;
  }

  bool decode_value(const Value& value, const Schema& schema, const Place& place, Value& out) {
    switch (schema.shape) {
      case Shape::object:
        if (!value.is_object()) {
          mismatch(place, value, schema.go_type);
          return false;
        }
        return decode_object(value, schema, place, out);
      case Shape::list:
        return decode_list(value, schema, place, out);
      case Shape::map:
        return decode_map(value, schema, place, out);
      case Shape::string:
        if (!value.is_string()) mismatch(place, value, schema.go_type);
        return false;
      case Shape::boolean:
        if (!value.is_boolean()) mismatch(place, value, schema.go_type);
        return false;
      case Shape::int32:
      case Shape::int64:
        return decode_integer(value, schema, place);
      case Shape::number:
        if (!value.is_number()) mismatch(place, value, schema.go_type);
        return false;
      case Shape::bytes:
        return decode_bytes(value, schema, place, out);
      case Shape::quantity:
        return decode_quantity(value, out);
      case Shape::int_or_string:
        return decode_int_or_string(value, place);
      case Shape::time:
      case Shape::micro_time:
        return decode_time(value, schema, place, out);
      case Shape::duration:
        return decode_duration(value, place, out);
      case Shape::any:
        return decode_any(value, schema, out);
      case Shape::fields_v1:
        return false;
    }
    return false;
  }

  bool decode_object(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (++depth_ > kMaxDepth) {
      fatal("exceeded max depth");
      return false;
    }
    bool changed = decode_members(value, schema, place, out);
    --depth_;
    return changed;
  }

  bool decode_members(const Value& value, const Schema& schema, const Place& place, Value& out) {
    bool changed = false;
    std::size_t kept = 0;
    std::size_t position = 0;
    // Until something changes the input serves; then the members so far are copied.
    auto begin_copy = [&] {
      if (changed) return;
      changed = true;
      out = Value::object();
      std::size_t i = 0;
      for (const auto& [key, member] : value.members()) {
        if (i++ == position) break;
        out.set(key, member);
      }
    };
    for (const auto& [key, member] : value.members()) {
      const Field* field = schema.field(key);
      if (field == nullptr) {
        Place here{&place, nullptr, nullptr, key, 0, Place::Form::key};
        unknown_field(here);
        begin_copy();
        ++position;
        continue;
      }
      Place here{&place, field, &schema, {}, 0, Place::Form::field};
      Value next;
      Fate fate = decode_field(member, *field, here, next);
      if (fatal_) return false;
      if (fate == Fate::absent) {
        begin_copy();
      } else {
        if (field->zero == Zero::keep) ++kept;
        if (fate == Fate::changed) {
          begin_copy();
          out.set(key, std::move(next));
        } else if (changed) {
          out.set(key, member);
        }
      }
      ++position;
    }
    if (kept < schema.kept.size()) {
      if (!changed) {
        changed = true;
        out = value;
      }
      for (std::uint16_t index : schema.kept) {
        const Field& field = schema.fields[index];
        if (!out.contains(field.name)) out.set(field.name, schema.empty[field.name]);
      }
    }
    return changed;
  }

  /// An element of a list or map is never left out: null gives the zero value.
  bool decode_element(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (value.is_null()) return zero_or_same(value, schema, out) == Fate::changed;
    return decode_value(value, schema, place, out);
  }

  bool decode_list(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (!value.is_array()) {
      mismatch(place, value, schema.go_type);
      return false;
    }
    bool changed = false;
    std::size_t index = 0;
    for (const Value& item : value.items()) {
      Place here{&place, nullptr, nullptr, {}, index, Place::Form::index};
      Value next;
      if (decode_element(item, *schema.element, here, next)) {
        if (!changed) {
          changed = true;
          out = value;
        }
        out.mut(index) = std::move(next);
      }
      if (fatal_) return false;
      ++index;
    }
    return changed;
  }

  bool decode_map(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (!value.is_object()) {
      mismatch(place, value, schema.go_type);
      return false;
    }
    bool changed = false;
    for (const auto& [key, member] : value.members()) {
      Place here{&place, nullptr, nullptr, key, 0, Place::Form::key};
      Value next;
      if (decode_element(member, *schema.element, here, next)) {
        if (!changed) {
          changed = true;
          out = value;
        }
        out.set(key, std::move(next));
      }
      if (fatal_) return false;
    }
    return changed;
  }

  bool decode_integer(const Value& value, const Schema& schema, const Place& place) {
    if (!value.is_number()) {
      mismatch(place, value, schema.go_type);
      return false;
    }
    if (value.is_integer()) {
      std::int64_t number = value.as_int();
      if (schema.shape == Shape::int64 || (number >= INT32_MIN && number <= INT32_MAX))
        return false;
    }
    mismatch(place, value, schema.go_type, true);
    return false;
  }

  bool decode_bytes(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (!value.is_string()) {
      mismatch(place, value, schema.go_type);
      return false;
    }
    std::string_view text = value.as_string();
    std::string bytes;
    if (!base64_decode(text, bytes)) {
      if (!fault_)
        fault_ = Error::bad_request(cat("illegal base64 data at input byte ", base64_fault(text)));
      return false;
    }
    std::string written = base64_encode(bytes);
    if (written == text) return false;
    out = Value(written);
    return true;
  }

  bool decode_quantity(const Value& value, Value& out) {
    auto parsed = Quantity::parse(value.is_string() ? trim(value.as_string()) : json::write(value));
    if (!parsed.ok()) {
      fatal(parsed.error().message());
      return false;
    }
    std::string text = parsed->str();
    if (value.is_string() && value.as_string() == text) return false;
    out = Value(text);
    return true;
  }

  bool decode_int_or_string(const Value& value, const Place& place) {
    if (value.is_string()) return false;
    if (value.is_integer() && value.as_int() >= INT32_MIN && value.as_int() <= INT32_MAX)
      return false;
    fatal_mismatch(place, value, "int32", value.is_number());
    return false;
  }

  bool decode_time(const Value& value, const Schema& schema, const Place& place, Value& out) {
    if (!value.is_string()) {
      fatal_mismatch(place, value, "string");
      return false;
    }
    bool micro = schema.shape == Shape::micro_time;
    auto parsed = parse_moment(value.as_string(), micro);
    if (!parsed.ok()) {
      fatal(parsed.error().message());
      return false;
    }
    std::string text = format_moment(*parsed, micro);
    if (text == value.as_string()) return false;
    out = Value(text);
    return true;
  }

  bool decode_duration(const Value& value, const Place& place, Value& out) {
    if (!value.is_string()) {
      fatal_mismatch(place, value, "string");
      return false;
    }
    auto parsed = parse_duration(value.as_string());
    if (!parsed.ok()) {
      fatal(parsed.error().message());
      return false;
    }
    std::string text = format_duration(*parsed);
    if (text == value.as_string()) return false;
    out = Value(text);
    return true;
  }

  /// Unions decode their inside by a decoder of their own, which tells no unknown fields.
  bool decode_any(const Value& value, const Schema& schema, Value& out) {
    if (schema.element == nullptr) return false;
    std::vector<std::string> untold;
    Decoder inner(false, untold);
    inner.depth_ = depth_;
    Place root;
    bool changed = false;
    if (value.is_object()) {
      changed = inner.decode_object(value, *schema.element, root, out);
    } else if (value.is_array() && schema.any_form == AnyForm::schema_or_array) {
      std::size_t index = 0;
      for (const Value& item : value.items()) {
        Value next;
        if (inner.decode_element(item, *schema.element, root, next)) {
          if (!changed) out = value;
          changed = true;
          out.mut(index) = std::move(next);
        }
        ++index;
      }
    } else if (schema.any_form == AnyForm::schema_or_bool && !value.is_boolean()) {
      fatal("boolean or JSON schema expected");
    } else if (schema.any_form == AnyForm::schema_or_strings && !value.is_array()) {
      out = Value();
      changed = true;
    }
    if (inner.fault_) {
      fault_ = std::move(inner.fault_);
      fatal_ = true;
    }
    return changed;
  }

  bool told_;
  bool keeps_empty_;
  bool fatal_ = false;
  int depth_ = 0;
  std::optional<Error> fault_;
  std::vector<std::string>& strict_errors_;
};

}  // namespace

Error strict_error(const std::vector<std::string>& strict_errors) {
  return Error::bad_request(cat("strict decoding error: ", join(strict_errors, ", ")));
}

Result<Value> decode(const Value& raw, const Schema& schema, Strictness strictness,
                     std::vector<std::string>& strict_errors) {
  Decoder decoder(strictness != Strictness::ignore, strict_errors);
  DIBS_TRY(Value value, decoder.run(raw, schema));
  if (strictness == Strictness::strict && !strict_errors.empty())
    return strict_error(strict_errors);
  return value;
}

Result<Value> decode_as_sent(const Value& raw, const Schema& schema) {
  std::vector<std::string> ignored;
  return Decoder(false, ignored, true).run(raw, schema);
}

}  // namespace dibs::api
