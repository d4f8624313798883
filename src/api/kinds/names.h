#pragma once
// Spellings that the API demands of names, keys and addresses.
//
// Each check returns what is wrong in the words of the API, one text per fault; an empty list means
// the text is fine. The texts are the detail of a field error: errors.invalid(path, value, text).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

using Faults = std::vector<std::string>;

inline constexpr std::size_t kDns1123LabelMaxLength = 63;
inline constexpr std::size_t kDns1123SubdomainMaxLength = 253;
inline constexpr std::size_t kLabelValueMaxLength = 63;

Faults is_dns1123_label(std::string_view text);
Faults is_dns1123_subdomain(std::string_view text);
/// A sub-domain whose labels may hold underscores (DNS search paths).
Faults is_dns1123_subdomain_with_underscore(std::string_view text);
Faults is_dns1035_label(std::string_view text);
Faults is_wildcard_dns1123_subdomain(std::string_view text);
/// "name" or "prefix/name": label keys, annotation keys, resource names, finalizers.
Faults is_qualified_name(std::string_view text);
/// "example.com/path": domain and a path behind it.
Faults is_domain_prefixed_path(std::string_view text);
Faults is_label_value(std::string_view text);
Faults is_c_identifier(std::string_view text);
Faults is_env_var_name(std::string_view text);
Faults is_relaxed_env_var_name(std::string_view text);
Faults is_config_map_key(std::string_view text);
Faults is_http_header_name(std::string_view text);
Faults is_path_segment_name(std::string_view text);
Faults is_percent(std::string_view text);
/// The name of a port: up to 15 of [a-z0-9-] with a letter among them.
Faults is_port_name(std::string_view text);
Faults is_port_number(std::int64_t number);
Faults is_user_id(std::int64_t id);
Faults is_group_id(std::int64_t id);
Faults is_in_range(std::int64_t number, std::int64_t low, std::int64_t high);

/// metadata.name under a rule; `prefix`: judged as generateName, which may end in "-".
Faults is_name(NameRule rule, std::string_view text, bool prefix = false);

/// Addresses, strictly: no leading zeros.
bool is_ip(std::string_view text);
bool is_ipv4(std::string_view text);
bool is_ipv6(std::string_view text);
bool is_cidr(std::string_view text);
/// "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
void validate_ip(std::string_view text, const Path& path, FieldErrors& errors);
void validate_cidr(std::string_view text, const Path& path, FieldErrors& errors);

/// Reports every fault of the list as an invalid value.
void add_invalid(const Faults& faults, const Value& value, const Path& path, FieldErrors& errors);

/// "must be no more than N characters" and the like, in one place since the same words come up all
/// over the API. DNS names and ports are counted in "characters", labels and keys in "bytes".
std::string max_length_text(std::size_t limit);
std::string max_bytes_text(std::size_t limit);
std::string regex_text(std::string_view message, std::string_view format,
                       const std::vector<std::string>& examples);
std::string inclusive_range_text(std::int64_t low, std::int64_t high);

}  // namespace dibs::api
