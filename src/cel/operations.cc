#include "cel/operations.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/strings.h"

namespace dibs::cel {

namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTwoTo64 = 18446744073709551616.0;
constexpr std::int64_t kNanos = 1'000'000'000;

template <typename T>
Order order_of(const T& a, const T& b) {
  return a < b ? Order::less : b < a ? Order::greater : Order::same;
}

Order flipped(Order order) {
  return order == Order::less ? Order::greater : order == Order::greater ? Order::less : order;
}

Order order_int_real(std::int64_t a, double b) {
  if (std::isnan(b)) return Order::unordered;
  if (b > kTwoTo63) return Order::less;
  if (b < -kTwoTo63) return Order::greater;
  return order_of(static_cast<double>(a), b);
}

Order order_uint_real(std::uint64_t a, double b) {
  if (std::isnan(b)) return Order::unordered;
  if (b > kTwoTo64) return Order::less;
  if (b < 0) return Order::greater;
  return order_of(static_cast<double>(a), b);
}

Order order_numbers(const Value& a, const Value& b) {
  if (a.kind() > b.kind()) return flipped(order_numbers(b, a));
  switch (a.kind()) {
    case Kind::integer:
      if (b.is(Kind::integer)) return order_of(a.as_integer(), b.as_integer());
      if (b.is(Kind::real)) return order_int_real(a.as_integer(), b.as_real());
      if (a.as_integer() < 0) return Order::less;
      return order_of(a.as_uinteger(), b.as_uinteger());
    case Kind::uinteger:
      if (b.is(Kind::uinteger)) return order_of(a.as_uinteger(), b.as_uinteger());
      return order_uint_real(a.as_uinteger(), b.as_real());
    default:
      if (std::isnan(a.as_real()) || std::isnan(b.as_real())) return Order::unordered;
      return order_of(a.as_real(), b.as_real());
  }
}

Value overflow() { return Value::borrow("integer overflow", Kind::error); }
Value unsigned_overflow() { return Value::borrow("unsigned integer overflow", Kind::error); }
Value timestamp_overflow() { return Value::borrow("timestamp overflow", Kind::error); }

Value moved_timestamp(const Value& time, std::int64_t by) {
  std::int64_t seconds = time.timestamp_seconds() + by / kNanos;
  std::int64_t nanos = static_cast<std::int64_t>(time.timestamp_nanos()) + by % kNanos;
  if (nanos < 0) {
    nanos += kNanos;
    --seconds;
  } else if (nanos >= kNanos) {
    nanos -= kNanos;
    ++seconds;
  }
  if (!is_valid_timestamp(seconds)) return timestamp_overflow();
  return Value::timestamp(seconds, static_cast<std::uint32_t>(nanos), time.timestamp_zone());
}

constexpr std::uint64_t kWork = 2'000'000;
constexpr int kMaxDepth = 1000;
thread_local std::uint64_t work_left = std::numeric_limits<std::uint64_t>::max();
thread_local int depth = 0;

/// How deep equality is in lists and maps; their content may come from outside.
class Deeper {
 public:
  Deeper() { ++depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth; }
  bool too_deep() const { return depth > kMaxDepth; }
};

Value too_much() { return Value::borrow("values too large to compare", Kind::error); }

Value equal_lists(const List& a, const List& b) {
  const Deeper here;
  if (here.too_deep()) return too_much();
  if (Value own; a.equals(b, own)) return own;
  if (a.size() != b.size()) return Value::boolean(false);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!work()) return too_much();
    Value same = equal(a.at(i), b.at(i));
    if (!same.is_true()) return same;
  }
  return Value::boolean(true);
}

Value equal_maps(const Map& a, const Map& b) {
  const Deeper here;
  if (here.too_deep()) return too_much();
  if (Value own; a.equals(b, own)) return own;
  if (a.size() != b.size()) return Value::boolean(false);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!work()) return too_much();
    const Value key = a.key_at(i);
    Value other;
    if (!b.contains(key) || !b.find(key, other)) return Value::boolean(false);
    Value same = equal(a.value_at(i), other);
    if (!same.is_true()) return same;
  }
  return Value::boolean(true);
}

}  // namespace

bool list_position(const Value& key, std::int64_t& position) {
  switch (key.kind()) {
    case Kind::integer:
      position = key.as_integer();
      return true;
    case Kind::uinteger:
      if (key.as_integer() < 0) return false;
      position = key.as_integer();
      return true;
    case Kind::real: {
      const double d = key.as_real();
      if (!(d >= -kTwoTo63 && d < kTwoTo63) || d != std::trunc(d)) return false;
      position = static_cast<std::int64_t>(d);
      return true;
    }
    default:
      return false;
  }
}

bool is_valid_timestamp(std::int64_t seconds) {
  return seconds >= -62135596800 && seconds <= 253402300799;
}

Value too_long() { return Value::borrow("value too long", Kind::error); }

WorkShare::WorkShare() : before_(std::exchange(work_left, kWork)) {}
WorkShare::~WorkShare() { work_left = before_; }

bool work() {
  if (work_left == 0) return false;
  --work_left;
  return true;
}

Value equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return Value::boolean(order_numbers(a, b) == Order::same);
  if (a.is(Kind::opaque)) {
    if (b.is(Kind::opaque) && a.type_name() == b.type_name() &&
        a.as_opaque().comparable_with(b.as_opaque()))
      return Value::boolean(a.as_opaque().equals(b.as_opaque()));
    if (b.is(Kind::null) || !a.as_opaque().equals_only_itself()) return Value::boolean(false);
    return Value::no_such_overload();
  }
  if (a.kind() != b.kind()) return Value::boolean(false);
  switch (a.kind()) {
    case Kind::null:
      return Value::boolean(true);
    case Kind::boolean:
    case Kind::duration:
      return Value::boolean(a.as_integer() == b.as_integer());
    case Kind::string:
    case Kind::bytes:
    case Kind::type:
      return Value::boolean(a.text() == b.text());
    case Kind::timestamp:
      return Value::boolean(a.timestamp_seconds() == b.timestamp_seconds() &&
                            a.timestamp_nanos() == b.timestamp_nanos());
    case Kind::list:
      return equal_lists(a.as_list(), b.as_list());
    case Kind::map:
      return equal_maps(a.as_map(), b.as_map());
    case Kind::optional:
      if (a.has_content() && b.has_content()) return equal(a.content(), b.content());
      return Value::boolean(a.has_content() == b.has_content());
    default:
      return Value::boolean(false);
  }
}

Order order(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  if (a.kind() != b.kind()) return Order::no_overload;
  switch (a.kind()) {
    case Kind::boolean:
    case Kind::duration:
      return order_of(a.as_integer(), b.as_integer());
    case Kind::string:
    case Kind::bytes:
      return order_of(a.text(), b.text());
    case Kind::timestamp:
      if (a.timestamp_seconds() != b.timestamp_seconds())
        return order_of(a.timestamp_seconds(), b.timestamp_seconds());
      return order_of(a.timestamp_nanos(), b.timestamp_nanos());
    default:
      return Order::no_overload;
  }
}

Value add(const Value& a, const Value& b) {
  std::int64_t sum;
  if (a.kind() == b.kind()) {
    switch (a.kind()) {
      case Kind::integer:
        if (__builtin_add_overflow(a.as_integer(), b.as_integer(), &sum)) return overflow();
        return Value::integer(sum);
      case Kind::uinteger: {
        std::uint64_t total;
        if (__builtin_add_overflow(a.as_uinteger(), b.as_uinteger(), &total))
          return unsigned_overflow();
        return Value::uinteger(total);
      }
      case Kind::real:
        return Value::real(a.as_real() + b.as_real());
      case Kind::string:
      case Kind::bytes:
        if (a.text().size() + b.text().size() > kMaxTextBytes) return too_long();
        return a.is(Kind::string) ? Value::string(cat(a.text(), b.text()))
                                  : Value::bytes(cat(a.text(), b.text()));
      case Kind::duration:
        if (__builtin_add_overflow(a.as_duration(), b.as_duration(), &sum)) return overflow();
        return Value::duration(sum);
      case Kind::list: {
        if (Value own; a.as_list().plus(b.as_list(), own)) return own;
        if (a.as_list().size() == 0) return b;
        if (b.as_list().size() == 0) return a;
        if (a.as_list().size() + b.as_list().size() > kMaxItems) return too_long();
        std::vector<Value> items;
        items.reserve(a.as_list().size() + b.as_list().size());
        for (const List* part : {&a.as_list(), &b.as_list()}) {
          for (std::size_t i = 0; i < part->size(); ++i) items.push_back(part->at(i));
        }
        return Value::list(std::move(items));
      }
      default:
        return Value::no_such_overload();
    }
  }
  if (a.is(Kind::timestamp) && b.is(Kind::duration)) return moved_timestamp(a, b.as_duration());
  if (a.is(Kind::duration) && b.is(Kind::timestamp)) return moved_timestamp(b, a.as_duration());
  return Value::no_such_overload();
}

Value subtract(const Value& a, const Value& b) {
  std::int64_t difference;
  if (a.is(Kind::timestamp) && b.is(Kind::duration)) {
    // The two steps keep the smallest duration, which has no opposite, exact.
    const std::int64_t by = b.as_duration();
    if (by == std::numeric_limits<std::int64_t>::min()) {
      const Value most = moved_timestamp(a, std::numeric_limits<std::int64_t>::max());
      return most.is_error() ? most : moved_timestamp(most, 1);
    }
    return moved_timestamp(a, -by);
  }
  if (a.kind() != b.kind()) return Value::no_such_overload();
  switch (a.kind()) {
    case Kind::integer:
      if (__builtin_sub_overflow(a.as_integer(), b.as_integer(), &difference)) return overflow();
      return Value::integer(difference);
    case Kind::uinteger:
      if (a.as_uinteger() < b.as_uinteger()) return unsigned_overflow();
      return Value::uinteger(a.as_uinteger() - b.as_uinteger());
    case Kind::real:
      return Value::real(a.as_real() - b.as_real());
    case Kind::duration:
      if (__builtin_sub_overflow(a.as_duration(), b.as_duration(), &difference)) return overflow();
      return Value::duration(difference);
    case Kind::timestamp: {
      if (__builtin_mul_overflow(a.timestamp_seconds() - b.timestamp_seconds(), kNanos,
                                 &difference) ||
          __builtin_add_overflow(difference,
                                 static_cast<std::int64_t>(a.timestamp_nanos()) -
                                     static_cast<std::int64_t>(b.timestamp_nanos()),
                                 &difference))
        return overflow();
      return Value::duration(difference);
    }
    default:
      return Value::no_such_overload();
  }
}

Value multiply(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return Value::no_such_overload();
  switch (a.kind()) {
    case Kind::integer: {
      std::int64_t product;
      if (__builtin_mul_overflow(a.as_integer(), b.as_integer(), &product)) return overflow();
      return Value::integer(product);
    }
    case Kind::uinteger: {
      std::uint64_t product;
      if (__builtin_mul_overflow(a.as_uinteger(), b.as_uinteger(), &product))
        return unsigned_overflow();
      return Value::uinteger(product);
    }
    case Kind::real:
      return Value::real(a.as_real() * b.as_real());
    default:
      return Value::no_such_overload();
  }
}

Value divide(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return Value::no_such_overload();
  switch (a.kind()) {
    case Kind::integer:
      if (b.as_integer() == 0) return Value::borrow("division by zero", Kind::error);
      if (b.as_integer() == -1) return negate(a);
      return Value::integer(a.as_integer() / b.as_integer());
    case Kind::uinteger:
      if (b.as_uinteger() == 0) return Value::borrow("division by zero", Kind::error);
      return Value::uinteger(a.as_uinteger() / b.as_uinteger());
    case Kind::real:
      return Value::real(a.as_real() / b.as_real());
    default:
      return Value::no_such_overload();
  }
}

Value modulo(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return Value::no_such_overload();
  switch (a.kind()) {
    case Kind::integer:
      if (b.as_integer() == 0) return Value::borrow("modulus by zero", Kind::error);
      if (b.as_integer() == -1) {
        if (a.as_integer() == std::numeric_limits<std::int64_t>::min()) return overflow();
        return Value::integer(0);
      }
      return Value::integer(a.as_integer() % b.as_integer());
    case Kind::uinteger:
      if (b.as_uinteger() == 0) return Value::borrow("modulus by zero", Kind::error);
      return Value::uinteger(a.as_uinteger() % b.as_uinteger());
    default:
      return Value::no_such_overload();
  }
}

Value negate(const Value& a) {
  switch (a.kind()) {
    case Kind::integer:
      if (a.as_integer() == std::numeric_limits<std::int64_t>::min()) return overflow();
      return Value::integer(-a.as_integer());
    case Kind::real:
      return Value::real(-a.as_real());
    default:
      return Value::no_such_overload();
  }
}

Value contained(const Value& x, const Value& container) {
  if (container.is(Kind::map)) return Value::boolean(container.as_map().contains(x));
  if (!container.is(Kind::list)) return Value::no_such_overload();
  const List& list = container.as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!work()) return too_much();
    if (equal(list.at(i), x).is_true()) return Value::boolean(true);
  }
  return work_left == 0 ? too_much() : Value::boolean(false);
}

std::string show_key(const Value& key) {
  switch (key.kind()) {
    case Kind::boolean:
      return key.as_boolean() ? "true" : "false";
    case Kind::integer:
      return cat(key.as_integer());
    case Kind::uinteger:
      return cat(key.as_uinteger());
    case Kind::real:
      return show_double(key.as_real());
    case Kind::string:
    case Kind::bytes:
    case Kind::type:
      return std::string(key.text());
    case Kind::null:
      return "null";
    default:
      return std::string(key.type_name());
  }
}

Value at(const Value& container, const Value& key) {
  if (!is_key(key) && !key.is(Kind::real)) return invalid_qualifier(key);
  if (container.is(Kind::map)) {
    Value found;
    if (container.as_map().find(key, found)) return found;
    return Value::error(cat("no such key: ", show_key(key)));
  }
  if (container.is(Kind::list)) {
    std::int64_t position;
    if (!list_position(key, position)) {
      if (key.is_number())
        return Value::error(cat("unsupported index value ", show_key(key), " in list"));
      return Value::error(cat("unsupported index type '", key.type_name(), "' in list"));
    }
    const List& list = container.as_list();
    if (position < 0 || static_cast<std::uint64_t>(position) >= list.size())
      return Value::error(cat("index out of bounds: ", position));
    return list.at(static_cast<std::size_t>(position));
  }
  if (container.is(Kind::optional)) return at_optional(container, key);
  Value found;
  if (container.is(Kind::opaque) && key.is(Kind::string) &&
      container.as_opaque().field(key.text(), found))
    return found;
  return Value::error(cat("no such key: ", show_key(key)));
}

Value select(const Value& operand, const Value& field) { return at(operand, field); }

Value at_optional(const Value& container, const Value& key, bool lenient) {
  if (!is_key(key) && !key.is(Kind::real)) return invalid_qualifier(key);
  switch (container.kind()) {
    case Kind::map: {
      Value found;
      if (container.as_map().find(key, found)) return Value::some(std::move(found));
      return Value::none();
    }
    case Kind::list: {
      std::int64_t position;
      if (!list_position(key, position)) return at(container, key);
      if (position < 0 || static_cast<std::uint64_t>(position) >= container.as_list().size())
        return Value::none();
      return Value::some(container.as_list().at(static_cast<std::size_t>(position)));
    }
    case Kind::opaque: {
      Value found;
      if (key.is(Kind::string) && container.as_opaque().field(key.text(), found))
        return Value::some(std::move(found));
      return lenient ? Value::none() : at(container, key);
    }
    case Kind::optional: {
      if (!container.has_content()) return container;
      return at_optional(container.content(), key, lenient);
    }
    default:
      return lenient ? Value::none() : at(container, key);
  }
}

Value has_field(const Value& operand, const Value& field) {
  switch (operand.kind()) {
    case Kind::map: {
      if (operand.as_map().peek(field) != nullptr) return Value::boolean(true);
      Value unused;
      return Value::boolean(operand.as_map().find(field, unused));
    }
    case Kind::opaque: {
      Value unused;
      return Value::boolean(operand.as_opaque().field(field.text(), unused));
    }
    case Kind::optional:
      if (!operand.has_content()) return Value::boolean(false);
      return has_field(operand.content(), field);
    case Kind::list:
      return at(operand, field);
    default:
      return Value::boolean(false);
  }
}

Value size_of(const Value& value) {
  switch (value.kind()) {
    case Kind::string:
      return Value::integer(static_cast<std::int64_t>(code_points(value.text())));
    case Kind::bytes:
      return Value::integer(static_cast<std::int64_t>(value.text().size()));
    case Kind::list:
      return Value::integer(static_cast<std::int64_t>(value.as_list().size()));
    case Kind::map:
      return Value::integer(static_cast<std::int64_t>(value.as_map().size()));
    default:
      return Value::borrow("no such overload: size", Kind::error);
  }
}

std::string_view go_name(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return "types.Null";
    case Kind::boolean:
      return "types.Bool";
    case Kind::integer:
      return "types.Int";
    case Kind::uinteger:
      return "types.Uint";
    case Kind::real:
      return "types.Double";
    case Kind::string:
      return "types.String";
    case Kind::bytes:
      return "types.Bytes";
    case Kind::list:
      return "*types.baseList";
    case Kind::map:
      return "*types.baseMap";
    case Kind::duration:
      return "types.Duration";
    case Kind::timestamp:
      return "types.Timestamp";
    case Kind::type:
      return "*types.Type";
    case Kind::optional:
      return "*types.Optional";
    case Kind::error:
      return "*types.Err";
    case Kind::opaque:
      break;
  }
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"kubernetes.Semver", "cel.Semver"},
      {"kubernetes.Quantity", "cel.Quantity"},
      {"kubernetes.URL", "cel.URL"},
      {"kubernetes.NamedFormat", "cel.Format"},
      {"net.IP", "cel.IP"},
      {"net.CIDR", "cel.CIDR"}};
  for (const auto& [name, go] : kNames) {
    if (value.type_name() == name) return go;
  }
  return value.type_name();
}

Value invalid_qualifier(const Value& key) {
  return Value::error(cat("invalid qualifier type: ", go_name(key)));
}

Value no_such_overload(std::string_view function, const Value* arguments, std::size_t count) {
  std::string message = cat("no such overload: ", function, "(");
  for (std::size_t i = 0; i < count; ++i)
    append(message, i == 0 ? "" : ", ", arguments[i].type_name());
  message += ')';
  return Value::error(std::move(message));
}

std::size_t code_points(std::string_view text) {
  // Eight bytes at a time; those that continue a code point begin with the bits 10.
  constexpr std::uint64_t kLowBits = 0x0101010101010101;
  constexpr std::size_t kStep = sizeof(std::uint64_t);
  const auto continuing = [](const char* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, kStep);
    return word >> 7 & ~(word >> 6) & kLowBits;
  };
  std::size_t count = text.size();
  std::size_t at = 0;
  for (; at + kStep <= text.size(); at += kStep) {
    if (const std::uint64_t found = continuing(text.data() + at))
      count -= static_cast<std::size_t>(found * kLowBits >> 56);
  }
  for (; at < text.size(); ++at) count -= (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  return count;
}

void append_code_point(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

std::uint32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(offset);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (length == 1 || lead < 0xc2 || lead > 0xf4 || offset + length > text.size()) {
    ++offset;
    return length == 1 ? lead : 0xfffd;
  }
  std::uint32_t value = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(offset + i) & 0xc0) != 0x80) {
      ++offset;
      return 0xfffd;
    }
    value = (value << 6) | (byte(offset + i) & 0x3f);
  }
  offset += length;
  return value;
}

namespace {

std::string shown(double number, double exponent_from) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  if (number == 0) return std::signbit(number) ? "-0" : "0";
  char buffer[400];
  const double magnitude = std::fabs(number);
  const bool plain = magnitude >= 1e-4 && magnitude < exponent_from;
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(buffer, end.ptr);
}

}  // namespace

std::string show_double(double number) { return shown(number, 1e21); }
std::string double_text(double number) { return shown(number, 1e6); }

}  // namespace dibs::cel
