#include "api/kinds/declared.h"
#include "api/kinds/names.h"
#include "api/kinds/resource/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kDomainLength = 63;
constexpr std::size_t kPoolLength = 253;

Faults is_caseless_subdomain(std::string_view text) {
  Faults faults = is_dns1123_subdomain(to_lower(text), Unit::bytes);
  for (std::string& fault : faults) {
    if (fault.substr(0, 2) != "a ") continue;
    fault = regex_text(
        "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character",
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", {"Example.com"});
  }
  return faults;
}

void check_declared_pool(std::string_view name, const Path& path, FieldErrors& errors) {
  if (name.size() > kPoolLength) errors.too_long(path, kPoolLength);
  std::size_t i = 0;
  for (std::string_view part : split(name, '/')) {
    std::string where = cat("segment ", i++, ": ");
    if (part.empty()) {
      errors.invalid(path, Value(name), cat(where, "must not be empty"));
      continue;
    }
    for (const std::string& fault : is_dns1123_subdomain(part, Unit::bytes)) {
      errors.invalid(path, Value(part), cat(where, fault));
    }
  }
}

void check_declared_fully_qualified(std::string_view name, const Path& path, FieldErrors& errors) {
  auto parts = split(name, '/');
  if (parts.size() == 1) check_qualified_name(parts[0], path, errors);
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      errors.invalid(path, "", "prefix must not be empty");
    } else {
      if (parts[0].size() > kDomainLength) errors.too_long(path, kDomainLength);
      for (const std::string& fault : is_dns1123_subdomain(parts[0], Unit::bytes)) {
        errors.invalid(path, Value(parts[0]), cat("prefix: ", fault));
      }
    }
    if (parts[1].empty()) {
      errors.invalid(path, "", "name must not be empty");
    } else {
      check_qualified_name(parts[1], path, errors);
    }
  }
  if (parts.size() == 1) {
    errors.invalid(path, Value(name),
                   "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void check_declared_extended(std::string_view name, const Path& path, FieldErrors& errors) {
  Value shown(name);
  if (name.find('/') == std::string_view::npos) {
    errors.invalid(path, shown,
                   "a name must be a domain-prefixed path, such as 'example.com/my-prop'");
  } else if (name.find("kubernetes.io/") != std::string_view::npos) {
    errors.invalid(path, shown, "must not have \"kubernetes.io/\" domain");
  }
  if (name.substr(0, 9) == "requests.") {
    errors.invalid(path, shown, "must not have \"requests.\" prefix");
  }
  add_invalid(is_qualified_name(cat("requests.", name)), shown, path, errors);
}

}  // namespace

void check_declared_format(std::string_view format, std::string_view text, const Path& path,
                           FieldErrors& errors) {
  Value shown(text);
  if (format == "short-name") {
    add_invalid(is_dns1123_label(text, Unit::bytes), shown, path, errors);
  } else if (format == "long-name") {
    add_invalid(is_dns1123_subdomain(text, Unit::bytes), shown, path, errors);
  } else if (format == "path-segment") {
    add_invalid(is_path_segment_name(text), shown, path, errors);
  } else if (format == "caseless") {
    add_invalid(is_caseless_subdomain(text), shown, path, errors);
  } else if (format == "label-key") {
    add_invalid(is_qualified_name(text), shown, path, errors);
  } else if (format == "uuid") {
    if (!is_lower_uuid(text)) {
      errors.invalid(path, shown, "must be a lowercase UUID in 8-4-4-4-12 format");
    }
  } else if (format == "pool-name") {
    check_declared_pool(text, path, errors);
  } else if (format == "fully-qualified") {
    check_declared_fully_qualified(text, path, errors);
  } else if (format == "extended-resource") {
    check_declared_extended(text, path, errors);
  }
}

}  // namespace dibs::api
