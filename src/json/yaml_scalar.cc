#include "json/yaml_scalar.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "json/number.h"

namespace dibs::json {
namespace {

struct Word {
  std::string_view text;
  YamlTag tag;
  double number;  // or truth
};

const Word* find_word(std::string_view text) {
  using enum YamlTag;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  static constexpr Word kWords[] = {
      {"y", boolean, 1},
      {"Y", boolean, 1},
      {"yes", boolean, 1},
      {"Yes", boolean, 1},
      {"YES", boolean, 1},
      {"true", boolean, 1},
      {"True", boolean, 1},
      {"TRUE", boolean, 1},
      {"on", boolean, 1},
      {"On", boolean, 1},
      {"ON", boolean, 1},
      {"n", boolean, 0},
      {"N", boolean, 0},
      {"no", boolean, 0},
      {"No", boolean, 0},
      {"NO", boolean, 0},
      {"false", boolean, 0},
      {"False", boolean, 0},
      {"FALSE", boolean, 0},
      {"off", boolean, 0},
      {"Off", boolean, 0},
      {"OFF", boolean, 0},
      {"", null, 0},
      {"~", null, 0},
      {"null", null, 0},
      {"Null", null, 0},
      {"NULL", null, 0},
      {".nan", real, kNaN},
      {".NaN", real, kNaN},
      {".NAN", real, kNaN},
      {".inf", real, kInfinity},
      {".Inf", real, kInfinity},
      {".INF", real, kInfinity},
      {"+.inf", real, kInfinity},
      {"+.Inf", real, kInfinity},
      {"+.INF", real, kInfinity},
      {"-.inf", real, -kInfinity},
      {"-.Inf", real, -kInfinity},
      {"-.INF", real, -kInfinity},
  };
  if (text.size() > 5) return nullptr;
  for (const Word& word : kWords) {
    if (word.text == text) return &word;
  }
  return nullptr;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// As ParseInt and ParseUint with base 0: 0x, 0o, 0b and a leading 0 choose the base.
bool read_integer(std::string_view text, Value& out) {
  bool negative = false;
  bool sign = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    sign = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  if (text.empty() || text.front() == '-') return false;
  std::uint64_t size = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, size, base);
  if (read.ec != std::errc() || read.ptr != end) return false;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (negative) {
    if (size > kMost + 1) return false;
    out = size == kMost + 1
              ? Value(static_cast<long long>(std::numeric_limits<std::int64_t>::min()))
              : Value(-static_cast<long long>(size));
    return true;
  }
  if (size > kMost && sign) return false;
  out = Value(static_cast<unsigned long long>(size));
  return true;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > from;
  };
  auto one_of = [&](char a, char b) {
    if (at >= text.size() || (text[at] != a && text[at] != b)) return false;
    ++at;
    return true;
  };
  one_of('+', '-');
  if (one_of('.', '.')) {
    if (!digits()) return false;
  } else {
    if (!digits()) return false;
    if (one_of('.', '.')) digits();
  }
  if (one_of('e', 'E')) {
    one_of('+', '-');
    if (!digits()) return false;
  }
  return at == text.size();
}

bool read_float(std::string_view text, Value& out) {
  double number = 0;
  if (!looks_like_float(text) || !to_double(text, number)) return false;
  out = number;
  return true;
}

// 2001-1-2, 2001-01-02 3:04:05.6, 2001-01-02T03:04:05Z: the forms that go-yaml takes for times.
class TimestampReader {
 public:
  explicit TimestampReader(std::string_view text) : text_(text) {}

  bool matches() {
    int year = 0, month = 0, day = 0;
    if (!number(4, 4, year) || !take('-') || !number(1, 2, month) || !take('-') ||
        !number(1, 2, day)) {
      return false;
    }
    if (month < 1 || month > 12 || day < 1 || day > days_of(year, month)) return false;
    if (at_ == text_.size()) return true;
    const bool zoned = !take(' ');
    if (zoned && !take('T') && !take('t')) return false;
    int hour = 0, minute = 0, second = 0;
    if (!number(1, 2, hour) || !take(':') || !number(1, 2, minute) || !take(':') ||
        !number(1, 2, second) || hour > 23 || minute > 59 || second > 59) {
      return false;
    }
    if (take('.') || take(',')) {
      const std::size_t from = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      if (at_ == from) return false;
    }
    if (zoned && !take('Z')) {
      if (!take('+') && !take('-')) return false;
      if (!number(2, 2, hour) || !take(':') || !number(2, 2, minute)) return false;
      if (hour > 24 || minute > 59) return false;
    }
    return at_ == text_.size();
  }

 private:
  static int days_of(int year, int month) {
    static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : kDays[month - 1];
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(int least, int most, int& out) {
    int count = 0;
    for (; count < most && at_ < text_.size() && is_digit(text_[at_]); ++count, ++at_) {
      out = out * 10 + (text_[at_] - '0');
    }
    return count >= least;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?: not read as numbers here, but quoted for other
// readers.
bool is_sexagesimal(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  if (at >= text.size() || !is_digit(text[at])) return false;
  while (at < text.size() && (is_digit(text[at]) || text[at] == '_')) ++at;
  if (at >= text.size() || text[at] != ':') return false;
  while (at < text.size() && text[at] == ':') {
    const std::size_t from = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == from || at > from + 2 || (at == from + 2 && text[from] > '5')) return false;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    while (at < text.size() && (is_digit(text[at]) || text[at] == '_')) ++at;
  }
  return at == text.size();
}

YamlScalar resolve_freely(YamlTag tag, std::string_view text) {
  if (tag == YamlTag::string) return {YamlTag::string, Value(text)};
  if (const Word* word = find_word(text)) {
    switch (word->tag) {
      case YamlTag::boolean:
        return {word->tag, Value(word->number != 0)};
      case YamlTag::real:
        return {word->tag, Value(word->number)};
      default:
        return {word->tag, Value()};
    }
  }
  const char first = text.front();
  Value value;
  if (first == '.') {
    if (read_float(text, value)) return {YamlTag::real, value};
  } else if (is_digit(first) || first == '+' || first == '-') {
    if ((tag == YamlTag::none || tag == YamlTag::timestamp) && TimestampReader(text).matches()) {
      return {YamlTag::timestamp, Value(text)};
    }
    std::string plain(text);
    std::erase(plain, '_');
    if (read_integer(plain, value)) return {YamlTag::integer, value};
    if (read_float(plain, value)) return {YamlTag::real, value};
  }
  return {YamlTag::string, Value(text)};
}

}  // namespace

YamlTag yaml_tag(std::string_view tag) {
  using enum YamlTag;
  if (tag.empty()) return none;
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  if (!tag.starts_with(kPrefix)) return other;
  tag.remove_prefix(kPrefix.size());
  return tag == "str"         ? string
         : tag == "bool"      ? boolean
         : tag == "int"       ? integer
         : tag == "float"     ? real
         : tag == "null"      ? null
         : tag == "timestamp" ? timestamp
         : tag == "binary"    ? binary
         : tag == "merge"     ? merge
                              : other;
}

std::string_view short_name(YamlTag tag) {
  switch (tag) {
    case YamlTag::string:
      return "!!str";
    case YamlTag::boolean:
      return "!!bool";
    case YamlTag::integer:
      return "!!int";
    case YamlTag::real:
      return "!!float";
    case YamlTag::null:
      return "!!null";
    case YamlTag::timestamp:
      return "!!timestamp";
    case YamlTag::binary:
      return "!!binary";
    case YamlTag::merge:
      return "!!merge";
    default:
      return "";
  }
}

std::optional<YamlScalar> resolve_yaml(YamlTag tag, std::string_view text, YamlTag& found) {
  if (tag == YamlTag::binary || tag == YamlTag::merge || tag == YamlTag::other) {
    return YamlScalar{tag, Value(text)};
  }
  YamlScalar scalar = resolve_freely(tag, text);
  found = scalar.tag;
  if (tag == YamlTag::none || tag == scalar.tag) return scalar;
  if (tag == YamlTag::real && scalar.tag == YamlTag::integer) {
    return YamlScalar{YamlTag::real, Value(scalar.value.as_double())};
  }
  return std::nullopt;
}

bool is_plain_yaml_string(std::string_view text) {
  // Upstream leaves the merge key without quotes, and cannot read it back.
  return resolve_freely(YamlTag::none, text).tag == YamlTag::string && !is_sexagesimal(text) &&
         text != "<<";
}

}  // namespace dibs::json
