#include "base/flags.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/did_you_mean.h"
#include "base/strings.h"

namespace dibs::flags {
namespace {

/// Without the zeros that nobody would write.
std::string number_text(double number) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::general, 15);
  return std::string(text, end.ptr);
}

template <typename Number>
std::string number_text(Number number) {
  return std::to_string(number);
}

/// More than a century, and added to any time still a time.
constexpr Duration kLongest = std::chrono::hours(1'200'000);

Duration seconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Error must_be(std::string_view word, std::string_view what) {
  return Error::bad_request(cat(quoted(word), ": must be ", what));
}

template <typename Number>
struct Range {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
  std::string text() const { return cat(number_text(least), " to ", number_text(most)); }
};

template <typename Number>
Range<Number> range(const Flag::Form& form) {
  Range<Number> out;
  if (form.least) out.least = static_cast<Number>(*form.least);
  if (form.most) out.most = static_cast<Number>(*form.most);
  return out;
}

template <typename Number>
Result<> set(const Flag::Form& form, Number* target, std::string_view word) {
  const auto bounds = range<Number>(form);
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < std::int64_t{bounds.least} ||
      number > std::int64_t{bounds.most}) {
    return must_be(word, cat("a whole number from ", bounds.text()));
  }
  *target = static_cast<Number>(number);
  return success();
}

Result<> set(const Flag::Form& form, double* target, std::string_view word) {
  double number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  const bool is_number = read.ec == std::errc() && read.ptr == end && std::isfinite(number);
  const bool bounded = form.least || form.most;
  if (!is_number || (form.least && number < *form.least) || (form.most && number > *form.most)) {
    std::string what = "a number";
    if (bounded && form.most) append(what, " from ", range<double>(form).text());
    if (bounded && !form.most) append(what, ", ", number_text(*form.least), " or more");
    return must_be(word, what);
  }
  *target = number;
  return success();
}

Result<> set(const Flag::Form& form, Duration* target, std::string_view word) {
  const auto duration = parse_duration(word);
  if (!duration.ok()) return must_be(word, "a duration, such as 90s, 1m30s or 500ms");
  const Duration least = seconds_of(form.least.value_or(0));
  const Duration most = form.most ? seconds_of(*form.most) : kLongest;
  if (*duration < least || *duration > most) {
    return must_be(
        word, form.most || *duration > most
                  ? cat("a duration from ", format_duration(least), " to ", format_duration(most))
                  : cat("a duration of ", format_duration(least), " or more"));
  }
  *target = *duration;
  return success();
}

Result<> set(const Flag::Form&, bool* target, std::string_view word) {
  const std::string lower = to_lower(word);
  for (const char* yes : {"true", "t", "yes", "y", "on", "enable", "1"}) {
    if (lower == yes) return *target = true, success();
  }
  for (const char* no : {"false", "f", "no", "n", "off", "disable", "0"}) {
    if (lower == no) return *target = false, success();
  }
  return must_be(word, "true or false");
}

Result<> check_member(const Flag::Form& form, const std::string& word) {
  if (form.one_of.empty()) return success();
  for (const std::string& known : form.one_of) {
    if (known == word) return success();
  }
  return Error::bad_request(cat(quoted(word), " is not one of ", join(form.one_of, ", "),
                                did_you_mean(word, form.one_of)));
}

Result<> set(const Flag::Form& form, std::string* target, const std::string& word) {
  DIBS_CHECK(check_member(form, word));
  *target = word;
  return success();
}

std::string text_of(const std::string* value) { return *value; }
std::string text_of(const std::vector<std::string>* value) { return join(*value, ","); }
std::string text_of(const Duration* value) { return format_duration(*value); }
std::string text_of(const bool* value) { return *value ? "true" : "false"; }
template <typename T>
std::string text_of(const T* value) {
  return number_text(*value);
}

const char* word_for(const std::string*) { return "TEXT"; }
const char* word_for(const std::vector<std::string>*) { return "TEXT"; }
const char* word_for(const Duration*) { return "DURATION"; }
const char* word_for(const bool*) { return "BOOLEAN"; }
const char* word_for(const int*) { return "INT"; }
const char* word_for(const unsigned*) { return "UINT"; }
const char* word_for(const double*) { return "FLOAT"; }

}  // namespace

std::vector<std::string> names_of(const Flag& flag) {
  std::vector<std::string> out;
  for (const std::string_view name : split(flag.name, ',')) out.emplace_back(name);
  return out;
}

std::string name_of(const Flag& flag) {
  const auto names = names_of(flag);
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name;
  }
  return names.front();
}

bool is_positional(const Flag& flag) { return !flag.name.starts_with('-'); }

bool is_switch(const Flag& flag) {
  return std::holds_alternative<bool*>(flag.target) && !flag.form.has_value;
}

bool is_list(const Flag& flag) {
  return std::holds_alternative<std::vector<std::string>*>(flag.target);
}

std::string type_of(const Flag& flag) {
  if (*flag.form.type != '\0') return flag.form.type;
  return std::visit([](auto* target) { return word_for(target); }, flag.target);
}

std::string range_of(const Flag& flag) {
  const Flag::Form& form = flag.form;
  if (!form.least && !form.most) return "";
  const char* unit = std::holds_alternative<Duration*>(flag.target) ? "s" : "";
  if (!form.most) return cat(number_text(*form.least), unit, " or more");
  return cat(number_text(form.least.value_or(0)), unit, " to ", number_text(*form.most), unit);
}

std::string value_of(const Flag& flag) {
  return std::visit([](auto* target) { return text_of(target); }, flag.target);
}

Result<> set_value(const Flag& flag, const std::vector<std::string>& words) {
  if (auto* const list = std::get_if<std::vector<std::string>*>(&flag.target)) {
    for (const std::string& word : words) DIBS_CHECK(check_member(flag.form, word));
    **list = words;
    return success();
  }
  return std::visit(
      [&](auto* target) -> Result<> {
        if constexpr (std::is_same_v<decltype(target), std::vector<std::string>*>) {
          return success();
        } else {
          return set(flag.form, target, words.back());
        }
      },
      flag.target);
}

}  // namespace dibs::flags
