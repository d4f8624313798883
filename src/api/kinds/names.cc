#include "api/kinds/names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/characters.h"
#include "base/strings.h"

namespace dibs::api {

std::string inclusive_range_text(std::int64_t low, std::int64_t high) {
  return cat("must be between ", low, " and ", high, ", inclusive");
}

Faults is_domain_prefixed_path(std::string_view text) {
  if (text.empty()) return {"must be non-empty"};
  auto slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    return {"must be a domain-prefixed path (such as \"acme.io/foo\")"};
  }
  Faults faults = is_dns1123_subdomain(text.substr(0, slash));
  for (char c : text.substr(slash + 1)) {
    if (!is_alphanumeric(c) && std::strchr("/-._~%!$&'()*+,;=:", c) == nullptr) {
      faults.push_back("Invalid path");
      break;
    }
  }
  return faults;
}

Faults is_wildcard_subdomain(std::string_view text) {
  Faults faults;
  if (text.size() > kDns1123SubdomainMaxLength)
    faults.push_back(max_length_text(kDns1123SubdomainMaxLength));
  const std::string_view rest = text.starts_with("*.") ? text.substr(2) : std::string_view();
  // Length is judged above, and as a whole.
  const Faults of_rest = is_dns1123_subdomain(rest.substr(0, kDns1123SubdomainMaxLength));
  if (of_rest.empty()) return faults;
  faults.push_back(regex_text(
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
      "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' "
      "and end with an alphanumeric character",
      "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", {"*.example.com"}));
  return faults;
}

Faults is_c_identifier(std::string_view text) {
  bool ok =
      !text.empty() && (is_letter(text[0]) || text[0] == '_') &&
      std::all_of(text.begin(), text.end(), [](char c) { return is_alphanumeric(c) || c == '_'; });
  if (ok) return {};
  return {
      regex_text("a valid C identifier must start with alphabetic character or '_', followed by a "
                 "string of alphanumeric characters or '_'",
                 "[A-Za-z_][A-Za-z0-9_]*", {"my_name", "MY_NAME", "MyName"})};
}

Faults is_env_var_name(std::string_view text) {
  Faults faults;
  bool ok =
      !text.empty() && !is_digit(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
        return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
      });
  if (!ok) {
    faults.push_back(
        regex_text("a valid environment variable name must consist of alphabetic characters, "
                   "digits, '_', '-', or "
                   "'.', and must not start with a digit",
                   "[-._a-zA-Z][-._a-zA-Z0-9]*", {"my.env-name", "MY_ENV.NAME", "MyEnvName1"}));
  }
  if (text == "." || text == "..")
    faults.push_back(cat("must not be '", text, "'"));
  else if (text.substr(0, 2) == "..")
    faults.push_back("must not start with '..'");
  return faults;
}

Faults is_relaxed_env_var_name(std::string_view text) {
  if (text.empty()) {
    return {
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"};
  }
  for (char c : text) {
    if (c < ' ' || c > '~' || c == '=') {
      return {
          "a valid environment variable name must consist only of printable ASCII characters other "
          "than '='"};
    }
  }
  return {};
}

Faults is_config_map_key(std::string_view text) {
  Faults faults;
  if (text.size() > kDns1123SubdomainMaxLength) {
    faults.push_back(max_length_text(kDns1123SubdomainMaxLength, Unit::bytes));
  }
  bool ok = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  if (!ok) {
    faults.push_back(
        regex_text("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                   "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  if (text == "." || text == "..")
    faults.push_back(cat("must not be '", text, "'"));
  else if (text.substr(0, 2) == "..")
    faults.push_back("must not start with '..'");
  return faults;
}

Faults is_http_header_name(std::string_view text) {
  bool ok = !text.empty() && std::all_of(text.begin(), text.end(),
                                         [](char c) { return is_alphanumeric(c) || c == '-'; });
  if (ok) return {};
  return {regex_text("a valid HTTP header must consist of alphanumeric characters or '-'",
                     "[-A-Za-z0-9]+", {"X-Header-Name"})};
}

Faults is_path_segment_name(std::string_view text) {
  if (text == "." || text == "..") return {cat("may not be '", text, "'")};
  Faults faults;
  for (char c : {'/', '%'}) {
    if (text.find(c) != std::string_view::npos) faults.push_back(cat("may not contain '", c, "'"));
  }
  return faults;
}

Faults is_percent(std::string_view text) {
  bool ok =
      text.size() > 1 && text.back() == '%' && std::all_of(text.begin(), text.end() - 1, is_digit);
  if (ok) return {};
  return {regex_text("a valid percent string must be a numeric string followed by an ending '%'",
                     "[0-9]+%", {"1%", "93%"})};
}

Faults is_port_name(std::string_view text) {
  Faults faults;
  if (text.size() > 15) faults.push_back(max_length_text(15));
  bool charset = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower_alphanumeric(c) || c == '-';
  });
  if (!charset)
    faults.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!std::any_of(text.begin(), text.end(), is_lower)) {
    faults.push_back("must contain at least one letter (a-z)");
  }
  if (text.find("--") != std::string_view::npos) {
    faults.push_back("must not contain consecutive hyphens");
  }
  if (!text.empty() && (text.front() == '-' || text.back() == '-')) {
    faults.push_back("must not begin or end with a hyphen");
  }
  return faults;
}

Faults is_port_number(std::int64_t number) { return is_in_range(number, 1, 65535); }
Faults is_user_id(std::int64_t id) { return is_in_range(id, 0, 2147483647); }
Faults is_group_id(std::int64_t id) { return is_in_range(id, 0, 2147483647); }

Faults is_in_range(std::int64_t number, std::int64_t low, std::int64_t high) {
  if (number >= low && number <= high) return {};
  return {inclusive_range_text(low, high)};
}

Faults is_name(NameRule rule, std::string_view text, bool prefix) {
  std::string masked;
  if (prefix && rule != NameRule::path_segment) {
    masked = as_name_prefix(text);
    text = masked;
  }
  switch (rule) {
    case NameRule::subdomain:
      return is_dns1123_subdomain(text);
    case NameRule::label:
      return is_dns1123_label(text);
    case NameRule::service:
      return is_dns1035_label(text);
    case NameRule::path_segment:
      return is_path_segment_name(text);
    case NameRule::any:
      return {};
  }
  return {};
}

bool is_ipv4(std::string_view text) {
  in_addr address;
  return text.size() < 64 && inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

bool is_ipv6(std::string_view text) {
  in6_addr address;
  return text.size() < 64 && inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

bool is_ip(std::string_view text) { return is_ipv4(text) || is_ipv6(text); }

namespace {

bool has_leading_zero(std::string_view dotted) {
  for (std::string_view part : split(dotted, '.')) {
    if (part.size() > 1 && part[0] == '0') return true;
  }
  return false;
}

// Dotted quads with leading zeros were addresses once and get a fault of their own.
std::string without_leading_zeros(std::string_view text) {
  std::string out;
  for (std::string_view part : split(text, '.')) {
    while (part.size() > 1 && part[0] == '0') part.remove_prefix(1);
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

bool is_mapped_ipv4(std::string_view text) {
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1 &&
         IN6_IS_ADDR_V4MAPPED(&address);
}

bool parse_cidr(std::string_view text, unsigned char* bytes, int& size, int& length) {
  auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  std::string address(text.substr(0, slash));
  std::string_view bits = text.substr(slash + 1);
  if (bits.empty() || bits.size() > 3 || !std::all_of(bits.begin(), bits.end(), is_digit)) {
    return false;
  }
  length = std::stoi(std::string(bits));
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1)
    size = 4;
  else if (inet_pton(AF_INET6, address.c_str(), bytes) == 1)
    size = 16;
  else
    return false;
  return length <= size * 8;
}

}  // namespace

void validate_ip(std::string_view text, const Path& path, FieldErrors& errors) {
  if (is_ip(text)) {
    if (is_mapped_ipv4(text)) {
      errors.invalid(path, Value(text), "must not be an IPv4-mapped IPv6 address");
    }
    return;
  }
  bool zeros = has_leading_zero(text) && is_ipv4(without_leading_zeros(text));
  errors.invalid(path, Value(text),
                 zeros ? "must not have leading 0s"
                       : "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

void validate_cidr(std::string_view text, const Path& path, FieldErrors& errors) {
  unsigned char bytes[16];
  int size = 0;
  int length = 0;
  if (text.size() >= 80 || !parse_cidr(text, bytes, size, length)) {
    errors.invalid(path, Value(text),
                   "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    return;
  }
  auto slash = text.find('/');
  if (text.size() - slash > 2 && text[slash + 1] == '0') {
    errors.invalid(path, Value(text), "must not have leading 0s in IP or prefix length");
    return;
  }
  if (size == 16 && is_mapped_ipv4(text.substr(0, slash))) {
    errors.invalid(path, Value(text), "must not have an IPv4-mapped IPv6 address");
    return;
  }
  for (int bit = length; bit < size * 8; ++bit) {
    if (bytes[bit / 8] & (0x80 >> (bit % 8))) {
      errors.invalid(path, Value(text), "must not have bits set beyond the prefix length");
      return;
    }
  }
}

void add_invalid(const Faults& faults, const Value& value, const Path& path, FieldErrors& errors) {
  for (const std::string& fault : faults) errors.invalid(path, value, fault);
}

}  // namespace dibs::api
