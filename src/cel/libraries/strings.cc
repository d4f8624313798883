#include <algorithm>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"
#include "cel/libraries/format.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

/// The byte at which a code point begins; npos when there are fewer.
std::size_t byte_of(std::string_view text, std::int64_t code_point) {
  std::size_t offset = 0;
  for (; code_point > 0; --code_point) {
    if (offset >= text.size()) return std::string_view::npos;
    next_code_point(text, offset);
  }
  return offset;
}

std::int64_t index_of_byte(std::string_view text, std::size_t byte) {
  return static_cast<std::int64_t>(code_points(text.substr(0, byte)));
}

Value out_of_range(std::int64_t index) { return Value::error(cat("index out of range: ", index)); }

Value char_at(const Value* arguments, std::size_t) {
  const std::string_view text = arguments[0].text();
  const std::int64_t index = arguments[1].as_integer();
  if (index < 0) return out_of_range(index);
  const std::size_t begin = byte_of(text, index);
  if (begin == std::string_view::npos) return out_of_range(index);
  if (begin == text.size()) return Value::borrow("");
  std::size_t end = begin;
  next_code_point(text, end);
  return arguments[0].piece(text.substr(begin, end - begin));
}

/// How searches that begin outside of the text end. The first knew no bounds for the empty text,
/// the second finds that at the end and nothing else there, the third refuses them all.
enum class Search : std::uint8_t { loose, bounded, strict };

template <Search Manner>
Value index_of(const Value* arguments, std::size_t count) {
  const std::string_view text = arguments[0].text();
  const std::int64_t from = count > 2 ? arguments[2].as_integer() : 0;
  const bool empty = arguments[1].text().empty();
  if (Manner == Search::loose && empty) return Value::integer(from);
  if (from < 0) return out_of_range(from);
  const std::size_t begin = byte_of(text, from);
  if (begin == std::string_view::npos) {
    if (Manner == Search::strict) return out_of_range(from);
    return Value::integer(empty ? index_of_byte(text, text.size()) : -1);
  }
  const std::size_t found = text.find(arguments[1].text(), begin);
  if (found == std::string_view::npos) return Value::integer(-1);
  return Value::integer(index_of_byte(text, found));
}

template <Search Manner>
Value last_index_of(const Value* arguments, std::size_t count) {
  const std::string_view text = arguments[0].text();
  std::size_t from = std::string_view::npos;
  if (count > 2) {
    const std::int64_t last = arguments[2].as_integer();
    const bool empty = arguments[1].text().empty();
    if (Manner == Search::loose && empty) return Value::integer(last);
    if (last < 0) return out_of_range(last);
    from = byte_of(text, last);
    if (from == std::string_view::npos && Manner == Search::strict) return out_of_range(last);
    if (from >= text.size() && Manner != Search::strict)
      return Value::integer(empty ? index_of_byte(text, text.size()) : -1);
  }
  const std::size_t found = text.rfind(arguments[1].text(), from);
  if (found == std::string_view::npos) return Value::integer(-1);
  return Value::integer(index_of_byte(text, found));
}

Value lower_ascii(const Value* arguments, std::size_t) {
  std::string out(arguments[0].text());
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return Value::string(std::move(out));
}

Value upper_ascii(const Value* arguments, std::size_t) {
  std::string out(arguments[0].text());
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return Value::string(std::move(out));
}

Value replace(const Value* arguments, std::size_t count) {
  const std::string_view text = arguments[0].text();
  const std::string_view old = arguments[1].text();
  const std::string_view with = arguments[2].text();
  std::int64_t left = count > 3 ? arguments[3].as_integer() : -1;
  std::string out;
  std::size_t at = 0;
  // An empty text to look for is found before each code point and at the end.
  while (left != 0) {
    const std::size_t found = text.find(old, at);
    if (found == std::string_view::npos) break;
    append(out, text.substr(at, found - at), with);
    if (out.size() > kMaxTextBytes) return too_long();
    at = found + old.size();
    if (left > 0) --left;
    if (old.empty()) {
      if (at >= text.size()) break;
      std::size_t next = at;
      next_code_point(text, next);
      out += text.substr(at, next - at);
      at = next;
    }
  }
  if (at <= text.size()) out += text.substr(at);
  return Value::string(std::move(out));
}

Value split(const Value* arguments, std::size_t count) {
  const std::string_view text = arguments[0].text();
  const std::string_view separator = arguments[1].text();
  const std::int64_t limit = count > 2 ? arguments[2].as_integer() : -1;
  std::vector<Value> parts;
  if (limit == 0) return Value::list(std::move(parts));
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) + 1 < limit) {
    std::size_t end;
    if (separator.empty()) {
      if (at >= text.size()) break;
      end = at;
      next_code_point(text, end);
      if (end >= text.size()) break;
    } else {
      end = text.find(separator, at);
      if (end == std::string_view::npos) break;
    }
    parts.push_back(arguments[0].piece(text.substr(at, end - at)));
    at = end + separator.size();
  }
  if (!separator.empty() || at < text.size()) parts.push_back(arguments[0].piece(text.substr(at)));
  return Value::list(std::move(parts));
}

Value substring(const Value* arguments, std::size_t count) {
  const std::string_view text = arguments[0].text();
  const std::int64_t from = arguments[1].as_integer();
  if (count > 2 && from > arguments[2].as_integer())
    return Value::error(
        cat("invalid substring range. start: ", from, ", end: ", arguments[2].as_integer()));
  if (from < 0) return out_of_range(from);
  const std::size_t begin = byte_of(text, from);
  if (count < 3) {
    if (begin == std::string_view::npos) return out_of_range(from);
    return arguments[0].piece(text.substr(begin));
  }
  const std::int64_t to = arguments[2].as_integer();
  if (begin == std::string_view::npos) return out_of_range(from);
  const std::size_t end = byte_of(text, to);
  if (end == std::string_view::npos) return out_of_range(to);
  return arguments[0].piece(text.substr(begin, end - begin));
}

bool is_space(std::uint32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

Value trim_spaces(const Value* arguments, std::size_t) {
  const std::string_view text = arguments[0].text();
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if (is_space(next_code_point(text, at))) continue;
    begin = std::min(begin, start);
    end = at;
  }
  return arguments[0].piece(begin < end ? text.substr(begin, end - begin) : text.substr(0, 0));
}

Value join_list(const Value* arguments, std::size_t count) {
  const List& list = arguments[0].as_list();
  std::string out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value item = list.at(i);
    if (!item.is(Kind::string)) return no_such_overload("join", arguments, count);
    if (i > 0 && count > 1) out += arguments[1].text();
    out += item.text();
    if (out.size() > kMaxTextBytes) return too_long();
  }
  return Value::string(std::move(out));
}

Value reverse(const Value* arguments, std::size_t) {
  const std::string_view text = arguments[0].text();
  std::string out(text.size(), '\0');
  std::size_t to = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    next_code_point(text, at);
    to -= at - start;
    text.copy(out.data() + to, at - start, start);
  }
  return Value::string(std::move(out));
}

Value quote(const Value* arguments, std::size_t) {
  std::string out = "\"";
  const std::string_view text = arguments[0].text();
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t c = next_code_point(text, at);
    constexpr std::string_view kPlain = "\a\b\f\n\r\t\v\\\"";
    constexpr std::string_view kLetters = "abfnrtv\\\"";
    const std::size_t escape =
        c < 0x80 ? kPlain.find(static_cast<char>(c)) : std::string_view::npos;
    if (escape != std::string_view::npos)
      append(out, '\\', kLetters[escape]);
    else
      append_code_point(out, c);
  }
  out += '"';
  return Value::string(std::move(out));
}

template <FormatStyle Style>
Value format(const Value* arguments, std::size_t) {
  return format_string(arguments[0].text(), arguments[1].as_list(), Style);
}

std::uint64_t cost_join(const Value*, std::size_t, const Value& result) {
  return scaled(cost_size(result), 2 * kScanFactor);
}

void add_unchanged(Environment& environment) {
  environment.function("charAt", {{".string, int -> string", char_at}});
  environment.function("lowerAscii", {{".string -> string", lower_ascii, cost_scan_first}});
  environment.function("upperAscii", {{".string -> string", upper_ascii, cost_scan_first}});
  environment.function("replace",
                       {{".string, string, string -> string", replace, cost_scan_twice},
                        {".string, string, string, int -> string", replace, cost_scan_twice}});
  environment.function("split", {{".string, string -> list(string)", split, cost_scan_twice},
                                 {".string, string, int -> list(string)", split, cost_scan_twice}});
  environment.function("substring", {{".string, int -> string", substring, cost_scan_first},
                                     {".string, int, int -> string", substring, cost_scan_first}});
  environment.function("trim", {{".string -> string", trim_spaces, cost_scan_first}});
  environment.function("join", {{".list(string) -> string", join_list, cost_join},
                                {".list(string), string -> string", join_list, cost_join}});
}

template <Search Manner>
void add_searches(Environment& environment) {
  const auto declare = [&](std::string_view name, Implementation call) {
    environment.function(name, {{".string, string -> int", call, cost_traverse_first},
                                {".string, string, int -> int", call, cost_traverse_first}});
  };
  declare("indexOf", index_of<Manner>);
  declare("lastIndexOf", last_index_of<Manner>);
}

}  // namespace

void add_strings(Environment& environment, int version, bool revised) {
  add_unchanged(environment);
  if (version >= 4)
    add_searches<Search::strict>(environment);
  else if (revised)
    add_searches<Search::bounded>(environment);
  else
    add_searches<Search::loose>(environment);
  if (version >= 1) {
    const bool plain = version >= 4;
    environment.options.format_style = plain ? FormatStyle::plain : FormatStyle::literal;
    environment.function("strings.quote", {{"string -> string", quote, cost_scan_first}});
    environment.function(
        "format",
        {{".string, list(dyn) -> string",
          plain ? format<FormatStyle::plain> : format<FormatStyle::literal>, cost_scan_first}});
  }
  if (version >= 3)
    environment.function("reverse", {{".string -> string", reverse, cost_scan_first}});
}

}  // namespace dibs::cel
