#include "api/kinds/resource/names.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/semver.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kDomainLength = 63;
constexpr std::size_t kIdentifierLength = 32;
constexpr std::size_t kPoolLength = 253;
constexpr std::size_t kValueLength = 64;

void check_identifier(std::string_view id, const Path& path, FieldErrors& errors) {
  if (id.size() > kIdentifierLength) errors.too_long(path, kIdentifierLength);
  add_invalid(is_c_identifier(id), Value(id), path, errors);
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// What the parser of UUIDs that old checks rely on has against the text; it also takes 32 digits
// alone, braces around, and a "urn:uuid:" in front.
std::string uuid_fault(std::string_view text) {
  auto dashed = [](std::string_view t) {
    for (std::size_t i = 0; i < t.size(); ++i) {
      bool dash = i == 8 || i == 13 || i == 18 || i == 23;
      if (dash ? t[i] != '-' : !is_hex(t[i])) return false;
    }
    return true;
  };
  switch (text.size()) {
    case 36:
      break;
    case 36 + 9:
      if (to_lower(text.substr(0, 9)) != "urn:uuid:") {
        return cat("invalid urn prefix: ", quoted(text.substr(0, 9)));
      }
      text = text.substr(9);
      break;
    case 36 + 2:
      if (text.front() != '{' || text.back() != '}') return "invalid bracketed UUID format";
      text = text.substr(1, 36);
      break;
    case 32:
      return std::all_of(text.begin(), text.end(), is_hex) ? "" : "invalid UUID format";
    default:
      return cat("invalid UUID length: ", text.size());
  }
  return dashed(text) ? "" : "invalid UUID format";
}

// Four decimal numbers; leading zeros are read over, as they always were here.
bool read_ipv4(std::string_view text, unsigned char* raw) {
  auto parts = split(text, '.');
  if (parts.size() != 4) return false;
  for (std::size_t i = 0; i < 4; ++i) {
    int number = 0;
    if (parts[i].empty()) return false;
    for (char c : parts[i]) {
      if (c < '0' || c > '9') return false;
      number = number * 10 + (c - '0');
      if (number > 255) return false;
    }
    raw[i] = static_cast<unsigned char>(number);
  }
  return true;
}

// The address and prefix as they would be written, or "" when the text is no such thing. IPv4 in
// the form of IPv6 counts as IPv4, with the bits of its prefix that are left.
std::string canonical_address(std::string_view text) {
  auto slash = text.find('/');
  if (slash == std::string_view::npos) return "";
  std::string address(text.substr(0, slash));
  std::string_view prefix = text.substr(slash + 1);
  if (prefix.empty() || prefix.size() > 3) return "";
  int bits = 0;
  for (char c : prefix) {
    if (c < '0' || c > '9') return "";
    bits = bits * 10 + (c - '0');
  }
  char shown[INET6_ADDRSTRLEN] = {};
  unsigned char raw[16] = {};
  if (read_ipv4(address, raw)) {
    if (bits > 32) return "";
    inet_ntop(AF_INET, raw, shown, sizeof shown);
    return cat(shown, "/", bits);
  }
  if (inet_pton(AF_INET6, address.c_str(), raw) != 1 || bits > 128) return "";
  bool mapped = std::all_of(raw, raw + 10, [](unsigned char b) { return b == 0; }) &&
                raw[10] == 0xff && raw[11] == 0xff;
  if (mapped) {
    inet_ntop(AF_INET, raw + 12, shown, sizeof shown);
    return cat(shown, "/", std::max(0, bits - 96));
  }
  inet_ntop(AF_INET6, raw, shown, sizeof shown);
  return cat(shown, "/", bits);
}

}  // namespace

bool is_lower_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

void check_driver_name(std::string_view name, const Path& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.required(path);
    return;
  }
  if (name.size() > kDomainLength) errors.too_long(path, kDomainLength);
  add_invalid(is_dns1123_subdomain(to_lower(name)), Value(name), path, errors);
}

void check_pool_name(std::string_view name, const Path& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.required(path);
    return;
  }
  if (name.size() > kPoolLength) errors.too_long(path, kPoolLength);
  for (std::string_view part : split(name, '/')) {
    add_invalid(is_dns1123_subdomain(part), Value(part), path, errors);
  }
}

void check_qualified_name(std::string_view name, const Path& path, FieldErrors& errors) {
  auto parts = split(name, '/');
  if (parts.size() == 1) check_identifier(parts[0], path, errors);
  // Names with more than one slash have always been let through.
  if (parts.size() != 2) return;
  if (parts[0].empty()) {
    errors.invalid(path, "", "the domain must not be empty");
  } else {
    check_driver_name(parts[0], path, errors);
  }
  if (parts[1].empty()) {
    errors.invalid(path, "", "the name must not be empty");
  } else {
    check_identifier(parts[1], path, errors);
  }
}

void check_fully_qualified_name(std::string_view name, const Path& path, FieldErrors& errors) {
  check_qualified_name(name, path, errors);
  if (name.find('/') == std::string_view::npos) {
    errors.invalid(path, Value(name),
                   "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void check_uuid(std::string_view text, const Path& path, FieldErrors& errors) {
  std::string fault = uuid_fault(text);
  if (!fault.empty()) {
    errors.invalid(path, Value(text), cat("error validating uid: ", fault));
  } else if (!is_lower_uuid(text)) {
    errors.invalid(path, Value(text),
                   "uid must be in RFC 4122 normalized form, "
                   "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
  }
}

void check_node_name(std::string_view name, const Path& path, FieldErrors& errors) {
  add_invalid(is_dns1123_subdomain(name), Value(name), path, errors);
}

void check_label_name(const Value& name, const Path& path, FieldErrors& errors) {
  add_invalid(is_qualified_name(name.as_string()), name, path, errors);
}

void check_version_value(const Value& version, const Path& path, FieldErrors& errors) {
  std::string_view text = version.as_string();
  if (!SemanticVersion::parse(text).ok()) {
    errors.invalid(path, version, "must be a string compatible with semver.org spec 2.0.0");
  }
  if (text.size() > kValueLength) errors.too_long(path, kValueLength);
}

void check_interface_address(const Value& address, const Path& path, FieldErrors& errors) {
  std::string canonical = canonical_address(address.as_string());
  if (canonical.empty()) {
    errors.invalid(path, address,
                   "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
  } else if (canonical != address.as_string()) {
    errors.invalid(path, address, cat("must be in canonical form (\"", canonical, "\")"));
  }
}

std::string shortened_key(std::string_view key, std::size_t limit) {
  if (key.size() <= limit) return std::string(key);
  constexpr std::string_view dots = "...";
  std::size_t left = limit - dots.size();
  return cat(key.substr(0, (left + 1) / 2), dots, key.substr(key.size() - left / 2));
}

}  // namespace dibs::api
