#pragma once
// Spellings that the API demands of names, keys and addresses, beside those of base/names.h.
//
// The texts of faults are the detail of a field error: errors.invalid(path, value, text).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/names.h"

namespace dibs::api {

/// "example.com/path": domain and a path behind it.
Faults is_domain_prefixed_path(std::string_view text);
/// "*.example.com"
Faults is_wildcard_subdomain(std::string_view text);
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
/// "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
void validate_ip(std::string_view text, const Path& path, FieldErrors& errors);
void validate_cidr(std::string_view text, const Path& path, FieldErrors& errors);

/// Reports every fault of the list as an invalid value.
void add_invalid(const Faults& faults, const Value& value, const Path& path, FieldErrors& errors);

std::string inclusive_range_text(std::int64_t low, std::int64_t high);

}  // namespace dibs::api
