#include "cel/libraries/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr int kMaxPrecision = 1000;
constexpr int kScientificDigits = 6;

constexpr std::string_view kStringRule =
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps";
/// In the place of a type name.
constexpr std::string_view kNotText =
    "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string";
constexpr std::string_view kDecimalRule = "decimal clause can only be used on integers";
constexpr std::string_view kOctalRule = "octal clause can only be used on integers";
constexpr std::string_view kBinaryRule = "only integers and bools can be formatted as binary";
constexpr std::string_view kHexRule =
    "only integers, byte buffers, and strings can be formatted as hex";
constexpr std::string_view kScientificRule = "scientific clause can only be used on doubles";
constexpr std::string_view kFixedRule = "fixed-point clause can only be used on doubles";

std::string in_base(const Value& value, int base) {
  char buffer[80];
  const auto end = value.is(Kind::uinteger)
                       ? std::to_chars(buffer, buffer + sizeof buffer, value.as_uinteger(), base)
                       : std::to_chars(buffer, buffer + sizeof buffer, value.as_integer(), base);
  return std::string(buffer, end.ptr);
}

std::string printed(double number, int precision, char verb) {
  const char pattern[] = {'%', '.', '*', verb, '\0'};
  std::string out(400 + static_cast<std::size_t>(precision), '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(out.data(), out.size(), pattern, precision, number);
#pragma GCC diagnostic pop
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::string plain_real(double number) {
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return show_double(number);
}

std::string show_localized_special(double number) {
  if (std::isnan(number)) return "NaN";
  return number > 0 ? "∞" : "-∞";
}

/// "1,234.50".
std::string localized_fixed(double number, int precision) {
  if (!std::isfinite(number)) return show_localized_special(number);
  std::string text = printed(number, precision, 'f');
  const std::size_t first = text[0] == '-' ? 1 : 0;
  std::size_t at = std::min(text.find('.'), text.size());
  for (; at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

/// "1.234500×10⁰³". The number behind the dot is the least width there, not the precision.
std::string localized_scientific(double number, int width) {
  std::string text;
  if (!std::isfinite(number)) {
    text = show_localized_special(number);
  } else {
    const std::string plain = printed(number, kScientificDigits, 'e');
    const std::size_t mark = plain.find('e');
    text = cat(plain.substr(0, mark), "×10");
    constexpr std::string_view kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (plain[mark + 1] == '-') text += "⁻";
    for (const char digit : std::string_view(plain).substr(mark + 2))
      text += kDigits[static_cast<std::size_t>(digit - '0')];
  }
  const std::size_t length = code_points(text);
  const auto wanted = static_cast<std::size_t>(width);
  return length < wanted ? std::string(wanted - length, ' ') + text : text;
}

/// What %s shows of a value by itself; false for kinds that have no text.
bool show_plainly(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::timestamp:
      out += show_timestamp(value.timestamp_seconds(), value.timestamp_nanos(),
                            value.timestamp_zone());
      return true;
    case Kind::duration:
      out += show_duration(value.as_duration());
      return true;
    case Kind::list:
    case Kind::map:
    case Kind::optional:
    case Kind::opaque:
    case Kind::error:
      return false;
    default:
      out += show_key(value);
      return true;
  }
}

class Shower {
 public:
  explicit Shower(FormatStyle style) : literal_(style == FormatStyle::literal) {}

  /// %s. False, with the type name of the culprit, for what has no text.
  bool show(std::string& out, const Value& value, std::string& culprit) const {
    if (value.is(Kind::list) || value.is(Kind::map)) return element(out, value, culprit);
    if (value.is(Kind::real)) {
      out += literal_ ? double_text(value.as_real()) : plain_real(value.as_real());
      return true;
    }
    if (literal_ && value.is(Kind::bytes) && !is_valid_utf8(value.text())) {
      culprit = kNotText;
      return false;
    }
    if (show_plainly(out, value)) return true;
    culprit = value.type_name();
    return false;
  }

 private:
  /// Values nest as deep as an expression at most, so that this may recurse.
  bool element(std::string& out, const Value& value, std::string& culprit) const {
    if (value.is(Kind::list)) return list(out, value.as_list(), culprit);
    if (value.is(Kind::map)) return map(out, value.as_map(), culprit);
    if (!literal_) return show(out, value, culprit);
    std::string text;
    switch (value.kind()) {
      case Kind::real:
        text = localized_free(value.as_real());
        out += std::isfinite(value.as_real()) ? text : quoted(text);
        return true;
      case Kind::string:
        out += quoted(value.text());
        return true;
      case Kind::bytes:
        if (!is_valid_utf8(value.text())) return show(out, value, culprit);
        append(out, "b", quoted(value.text()));
        return true;
      case Kind::timestamp:
      case Kind::duration:
        show_plainly(text, value);
        append(out, value.is(Kind::duration) ? "duration(" : "timestamp(", quoted(text), ")");
        return true;
      default:
        return show(out, value, culprit);
    }
  }

  static std::string localized_free(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
    return printed(number, kScientificDigits, 'f');
  }

  bool list(std::string& out, const List& list, std::string& culprit) const {
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      if (!element(out, list.at(i), culprit)) return false;
      // The caller finds that it is too long.
      if (out.size() > kMaxTextBytes) break;
    }
    out += ']';
    return true;
  }

  bool map(std::string& out, const Map& map, std::string& culprit) const {
    std::vector<std::pair<std::string, std::string>> entries(map.size());
    std::size_t length = 0;
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (!element(entries[i].first, map.key_at(i), culprit) ||
          !element(entries[i].second, map.value_at(i), culprit))
        return false;
      length += entries[i].second.size();
      if (length > kMaxTextBytes) break;
    }
    std::sort(entries.begin(), entries.end());
    out += '{';
    for (std::size_t i = 0; i < entries.size(); ++i)
      append(out, i == 0 ? "" : ", ", entries[i].first, literal_ ? ":" : ": ", entries[i].second);
    out += '}';
    return true;
  }

  const bool literal_;
};

bool is_whole(const Value& value) { return value.is(Kind::integer) || value.is(Kind::uinteger); }

std::string misused(std::string_view rule, std::string_view given) {
  return cat("error during formatting: ", rule, ", was given ", given);
}

/// The number for %e and %f; false where there is none.
bool number_of(const Value& value, FormatStyle style, double& number) {
  if (value.is(Kind::real)) {
    number = value.as_real();
    return true;
  }
  if (style == FormatStyle::plain) {
    if (!is_whole(value)) return false;
    number = value.is(Kind::integer) ? static_cast<double>(value.as_integer())
                                     : static_cast<double>(value.as_uinteger());
    return true;
  }
  if (!value.is(Kind::string)) return false;
  if (value.text() != "NaN" && value.text() != "Infinity" && value.text() != "-Infinity")
    return false;
  number = value.text() == "NaN" ? std::nan("") : value.text()[0] == '-' ? -INFINITY : INFINITY;
  return true;
}

/// Appends one argument; the error is empty when that worked.
std::string append_clause(std::string& out, const FormatClause& clause, const Value& value,
                          FormatStyle style) {
  const char verb = clause.verb;
  switch (verb) {
    case 's': {
      std::string culprit;
      if (Shower(style).show(out, value, culprit)) return "";
      return culprit == kNotText ? cat("error during formatting: ", kNotText)
                                 : misused(kStringRule, culprit);
    }
    case 'd':
      if (is_whole(value)) {
        out += in_base(value, 10);
        return "";
      }
      // Infinities and NaN only: they are what integers become that do not fit.
      if (style == FormatStyle::plain && value.is(Kind::real) && !std::isfinite(value.as_real())) {
        out += plain_real(value.as_real());
        return "";
      }
      return misused(kDecimalRule, value.type_name());
    case 'o':
      if (!is_whole(value)) return misused(kOctalRule, value.type_name());
      out += in_base(value, 8);
      return "";
    case 'b':
      if (value.is(Kind::boolean)) {
        out += value.as_boolean() ? '1' : '0';
        return "";
      }
      if (!is_whole(value)) return misused(kBinaryRule, value.type_name());
      out += in_base(value, 2);
      return "";
    case 'x':
    case 'X': {
      std::string shown;
      if (is_whole(value))
        shown = in_base(value, 16);
      else if (value.is(Kind::string) || value.is(Kind::bytes))
        shown = hex_encode(value.text());
      else
        return misused(kHexRule, value.type_name());
      out += verb == 'X' ? to_upper(shown) : shown;
      return "";
    }
    default: {
      double number;
      if (!number_of(value, style, number))
        return misused(verb == 'e' ? kScientificRule : kFixedRule, value.type_name());
      if (style == FormatStyle::literal)
        out += verb == 'e' ? localized_scientific(number, clause.precision)
                           : localized_fixed(number, clause.precision);
      else
        out += std::isfinite(number) ? printed(number, clause.precision, verb) : plain_real(number);
      return "";
    }
  }
}

}  // namespace

std::string read_clause(std::string_view format, std::size_t& at, FormatClause& clause) {
  constexpr std::string_view kFailed = "could not parse formatting clause: ";
  clause = {};
  std::size_t i = at + 1;
  if (format[i] == '.') {
    const std::size_t digits = ++i;
    clause.precision = 0;
    for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
      clause.precision = clause.precision * 10 + (format[i] - '0');
      if (clause.precision > kMaxPrecision) return cat(kFailed, "precision too large");
    }
    if (i >= format.size())
      return cat(kFailed,
                 "error while parsing precision: could not find end of precision specifier");
    if (i == digits)
      return cat(kFailed,
                 "error while parsing precision: error while converting precision to integer: "
                 "strconv.Atoi: parsing \"\": invalid syntax");
  }
  clause.verb = format[i];
  at = i + 1;
  if (std::string_view("sdobxXef").find(clause.verb) != std::string_view::npos) return "";
  std::string shown;
  append_code_point(shown, static_cast<unsigned char>(clause.verb));
  return cat(kFailed, "unrecognized formatting clause \"", shown, "\"");
}

std::string_view broken_format_rule(char verb, const Type& type, FormatStyle style) {
  if (type.is(TypeKind::dyn)) return "";
  const bool whole = type.is(TypeKind::integer) || type.is(TypeKind::uinteger);
  // The literal style takes "NaN" and "Infinity" for numbers.
  const bool number =
      type.is(TypeKind::real) || (style == FormatStyle::plain ? whole : type.is(TypeKind::string));
  const bool text = type.is(TypeKind::string) || type.is(TypeKind::bytes);
  switch (verb) {
    case 's':
      return type.is(TypeKind::any) || type.is(TypeKind::opaque) || type.is(TypeKind::object)
                 ? kStringRule
                 : "";
    case 'd':
      return whole ? "" : kDecimalRule;
    case 'o':
      return whole ? "" : kOctalRule;
    case 'b':
      return whole || type.is(TypeKind::boolean) ? "" : kBinaryRule;
    case 'e':
      return number ? "" : kScientificRule;
    case 'f':
      return number ? "" : kFixedRule;
    default:
      return whole || text ? "" : kHexRule;
  }
}

Value format_string(std::string_view format, const List& arguments, FormatStyle style) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      out += '%';
      i += 2;
      continue;
    }
    if (used >= arguments.size()) return Value::error(cat("index ", used, " out of range"));
    if (i + 1 >= format.size()) return Value::error("unexpected end of string");
    FormatClause clause;
    std::string wrong = read_clause(format, i, clause);
    if (wrong.empty()) wrong = append_clause(out, clause, arguments.at(used++), style);
    if (!wrong.empty()) return Value::error(std::move(wrong));
    if (out.size() > kMaxTextBytes) return too_long();
  }
  return Value::string(std::move(out));
}

}  // namespace dibs::cel
