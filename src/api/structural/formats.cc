#include "api/structural/formats.h"

#include <arpa/inet.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/names.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::api {
namespace {

bool full_match(std::string_view text, const RE2& expression) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), expression);
}

/// A number of up to `digits` digits and at most `limit`; leading zeros are fine.
bool is_number(std::string_view text, std::size_t digits, int limit) {
  if (text.empty() || text.size() > digits || !std::all_of(text.begin(), text.end(), is_digit)) {
    return false;
  }
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number <= limit;
}

/// Four decimal numbers; leading zeros are tolerated, as upstream does for the sake of old objects.
bool is_sloppy_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return is_number(part, 8, 255);
         });
}

bool is_ipv6_text(std::string_view text) {
  in6_addr address;
  const std::string terminated(text);
  return text.find(':') != std::string_view::npos && text.find('%') == std::string_view::npos &&
         ::inet_pton(AF_INET6, terminated.c_str(), &address) == 1;
}

bool is_ip_with_dots(std::string_view text) {
  if (text.find('.') == std::string_view::npos) return false;
  return is_sloppy_ipv4(text) || is_ipv6_text(text);
}

bool is_ip_with_colons(std::string_view text) { return is_ipv6_text(text); }

bool is_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto address = text.substr(0, slash);
  const auto bits = text.substr(slash + 1);
  if (is_sloppy_ipv4(address)) return is_number(bits, 8, 32);
  return is_ipv6_text(address) && is_number(bits, 8, 128);
}

/// 6, 8 or 20 bytes as 00:00:…, 00-00-… or 0000.0000.….
bool is_mac(std::string_view text) {
  if (text.size() < 14) return false;
  const char separator = text[2] == ':' || text[2] == '-' ? text[2] : text[4];
  const std::size_t width = separator == '.' ? 4 : 2;
  if (separator != ':' && separator != '-' && separator != '.') return false;
  const auto parts = split(text, separator);
  for (std::string_view part : parts) {
    if (part.size() != width || !std::all_of(part.begin(), part.end(), is_hex_digit)) return false;
  }
  const std::size_t bytes = parts.size() * width / 2;
  return bytes == 6 || bytes == 8 || bytes == 20;
}

std::string digits_of(std::string_view text) {
  std::string digits;
  for (char c : text) {
    if (is_digit(c)) digits.push_back(c);
  }
  return digits;
}

std::string without_blanks_and_dashes(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != ' ' && c != '-' && c != '\t') out.push_back(c);
  }
  return out;
}

bool is_isbn10(std::string_view text) {
  const std::string isbn = without_blanks_and_dashes(text);
  if (isbn.size() != 10) return false;
  int sum = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const bool ten = i == 9 && isbn[i] == 'X';
    if (!ten && !is_digit(isbn[i])) return false;
    sum += static_cast<int>(i + 1) * (ten ? 10 : isbn[i] - '0');
  }
  return sum % 11 == 0;
}

bool is_isbn13(std::string_view text) {
  const std::string isbn = without_blanks_and_dashes(text);
  if (isbn.size() != 13 || !std::all_of(isbn.begin(), isbn.end(), is_digit)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < 13; ++i) sum += (i % 2 == 0 ? 1 : 3) * (isbn[i] - '0');
  return sum % 10 == 0;
}

bool is_credit_card(std::string_view text) {
  static const RE2 form(
      R"((?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14}))");
  const std::string digits = digits_of(text);
  if (!full_match(digits, form)) return false;
  int sum = 0;
  bool twice = false;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, twice = !twice) {
    int number = *digit - '0';
    if (twice) number *= 2;
    sum += number > 9 ? number - 9 : number;
  }
  return sum % 10 == 0;
}

bool is_date(std::string_view text) {
  return text.size() == 10 && parse_rfc3339(cat(text, "T00:00:00Z")).ok();
}

bool is_date_time(std::string_view text) {
  static const RE2 time_of_day(
      R"(([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2})))");
  const std::string lower = to_lower(text);
  const auto parts = split(lower, 't');
  if (parts.size() < 2 || !is_date(parts[0])) return false;
  const re2::StringPiece rest(parts[1].data(), parts[1].size());
  std::string hours;
  std::string minutes;
  std::string seconds;
  return RE2::FullMatch(rest, time_of_day, &hours, &minutes, &seconds) && hours <= "23" &&
         minutes <= "59" && seconds <= "59";
}

/// A Go duration, or numbers with units from nanoseconds to weeks somewhere in the text.
bool is_duration(std::string_view text) {
  if (parse_duration(text).ok()) return true;
  static const RE2 piece(R"((\d+)\s*([A-Za-zµ]+))");
  struct Unit {
    std::vector<std::string_view> exact;
    std::string_view prefix;
  };
  static const std::vector<Unit> units = {
      {{"ns"}, "nano"}, {{"us", "µs"}, "micro"}, {{"ms"}, "milli"}, {{"s"}, "sec"},
      {{"m"}, "min"},   {{"h", "hr"}, "hour"},   {{"d"}, "day"},    {{"w", "wk"}, "week"}};
  bool found = false;
  re2::StringPiece rest(text.data(), text.size());
  std::string number;
  std::string name;
  while (RE2::FindAndConsume(&rest, piece, &number, &name)) {
    if (number.size() > 18) return false;
    const std::string unit = to_lower(name);
    for (const Unit& known : units) {
      found = found || unit.starts_with(known.prefix) ||
              std::find(known.exact.begin(), known.exact.end(), unit) != known.exact.end();
    }
  }
  return found;
}

/// One letter per character: l(etter), d(igit), s(ymbol), '-', or '?'. What is not ASCII counts as
/// a letter.
std::string character_classes(std::string_view text) {
  std::string classes;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80) continue;
    if (byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      classes.push_back('l');
    } else if (is_digit(c)) {
      classes.push_back('d');
    } else if (std::string_view("$+<=>^`|~").find(c) != std::string_view::npos) {
      classes.push_back('s');
    } else {
      classes.push_back(c == '-' ? '-' : '?');
    }
  }
  return classes;
}

/// Labels of letters, digits and symbols with dashes inside, and a last one of letters only. A name
/// of one label may have a dash in its second place only: upstream's expression is such. Not by
/// RE2: classes of Unicode repeated 62 times are too much for it.
bool is_hostname(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  const auto labels = split(text, '.');
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string classes = character_classes(labels[i]);
    if (classes.empty() || labels[i].size() > 63 || classes.find('?') != std::string::npos)
      return false;
    if (labels.size() == 1) return classes[0] != '-' && classes.find('-', 2) == std::string::npos;
    const bool is_last = i + 1 == labels.size();
    if (is_last && (classes.size() < 2 || classes.find_first_not_of('l') != std::string::npos))
      return false;
    if (classes.front() == '-' || classes.back() == '-') return false;
  }
  return true;
}

/// An absolute URL or an absolute path.
bool is_request_uri(std::string_view text) {
  static const RE2 absolute(R"([a-zA-Z][a-zA-Z0-9+.-]*:.*)");
  if (text.empty()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return false;
    if (c == '%' &&
        (i + 2 >= text.size() || !is_hex_digit(text[i + 1]) || !is_hex_digit(text[i + 2])))
      return false;
  }
  if (text.front() == '/') return true;
  if (!full_match(text, absolute)) return false;
  const auto rest = text.substr(text.find(':') + 1);
  if (!rest.starts_with("//")) return !rest.empty() && rest.front() == '/';
  const auto host = rest.substr(2, rest.find_first_of("/?#", 2) - 2);
  return host.find_first_of(" <>\"") == std::string_view::npos;
}

/// "local@domain", or "Name <local@domain>".
bool is_email(std::string_view text) {
  static const RE2 address(
      R"(("(?:[^"\\\x00-\x1f]|\\.)*"|[^\s()<>\[\]:;@\\,."\x00-\x1f]+(\.[^\s()<>\[\]:;@\\,."\x00-\x1f]+)*)@([^\s()<>\[\]:;@\\,."\x00-\x1f]+(\.[^\s()<>\[\]:;@\\,."\x00-\x1f]+)*|\[[^\[\]\\]+\]))");
  text = trim(text);
  if (!text.empty() && text.back() == '>') {
    const auto open = text.rfind('<');
    if (open == std::string_view::npos) return false;
    const auto name = trim(text.substr(0, open));
    const bool is_quoted = name.size() >= 2 && name.front() == '"' && name.back() == '"';
    if (!is_quoted && name.find_first_of("<>@,;:\\\"[]()") != std::string_view::npos) return false;
    text = text.substr(open + 1, text.size() - open - 2);
  }
  return full_match(text, address);
}

using Check = bool (*)(std::string_view);

template <const char* kForm>
bool matches(std::string_view text) {
  static const RE2 form(kForm);
  return full_match(text, form);
}

constexpr char kObjectId[] = "[0-9a-fA-F]{24}";
constexpr char kUuid[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUuid3[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUuid4[] =
    "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kUuid5[] =
    "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kSsn[] = R"(\d{3}[- ]\d{2}[- ]\d{4})";
constexpr char kHexColor[] = "#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})";
constexpr char kRgbColor[] =
    R"(rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\))";
constexpr char kBase64[] =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})";

const std::map<std::string, Check, std::less<>>& checks() {
  static const std::map<std::string, Check, std::less<>> table = {
      {"bsonobjectid", matches<kObjectId>},
      {"byte", matches<kBase64>},
      {"cidr", is_network},
      {"creditcard", is_credit_card},
      {"date", is_date},
      {"datetime", is_date_time},
      {"duration", is_duration},
      {"email", is_email},
      {"hexcolor", matches<kHexColor>},
      {"hostname", is_hostname},
      {"ipv4", is_ip_with_dots},
      {"ipv6", is_ip_with_colons},
      {"isbn", [](std::string_view text) { return is_isbn10(text) || is_isbn13(text); }},
      {"isbn10", is_isbn10},
      {"isbn13", is_isbn13},
      {"k8slongname", [](std::string_view text) { return is_dns1123_subdomain(text).empty(); }},
      {"k8sshortname", [](std::string_view text) { return is_dns1123_label(text).empty(); }},
      {"mac", is_mac},
      {"password", [](std::string_view) { return true; }},
      {"rgbcolor", matches<kRgbColor>},
      {"ssn", matches<kSsn>},
      {"uri", is_request_uri},
      {"uuid", matches<kUuid>},
      {"uuid3", matches<kUuid3>},
      {"uuid4", matches<kUuid4>},
      {"uuid5", matches<kUuid5>},
  };
  return table;
}

const Check* find_check(std::string_view format) {
  std::string plain(format);
  std::erase(plain, '-');
  auto found = checks().find(plain);
  return found == checks().end() ? nullptr : &found->second;
}

}  // namespace

bool is_known_format(std::string_view type, std::string_view format) {
  if (type.empty() || type == "string") return find_check(format) != nullptr;
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  return false;
}

bool has_format(std::string_view text, std::string_view format) {
  const Check* check = find_check(format);
  return check == nullptr || (*check)(text);
}

}  // namespace dibs::api
