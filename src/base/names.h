#pragma once
// Names as Kubernetes spells them: labels and sub-domains of DNS, keys and values of labels.
//
// Each check returns what is wrong in the words of the API, one text per fault; an empty list means
// the text is fine.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs {

using Faults = std::vector<std::string>;

inline constexpr std::size_t kDns1123LabelMaxLength = 63;
inline constexpr std::size_t kDns1123SubdomainMaxLength = 253;
inline constexpr std::size_t kLabelValueMaxLength = 63;

/// What a limit is counted in. Upstream's older checks say characters, its newer ones bytes; they
/// mean the same.
enum class Unit : std::uint8_t { characters, bytes };

Faults is_dns1123_label(std::string_view text, Unit unit = Unit::characters);
Faults is_dns1123_subdomain(std::string_view text, Unit unit = Unit::characters);
/// A sub-domain whose labels may hold underscores (DNS search paths).
Faults is_dns1123_subdomain_with_underscore(std::string_view text);
Faults is_dns1035_label(std::string_view text);
/// "name" or "prefix/name": label keys, annotation keys, resource names, finalizers. `what` stands
/// in the text about too many slashes.
Faults is_qualified_name(std::string_view text, Unit unit = Unit::bytes,
                         std::string_view what = "a valid label key");
Faults is_label_value(std::string_view text);
/// "example.com/gpu": a resource of pods that is not Kubernetes' own.
bool is_extended_resource_name(std::string_view name);

/// The name as it is judged where something will be appended to it: it may end in a dash.
std::string as_name_prefix(std::string_view name);

/// "must be no more than 63 characters" and the like, since the same words come up all over.
std::string max_length_text(std::size_t limit, Unit unit = Unit::characters);
std::string regex_text(std::string_view message, std::string_view format,
                       const std::vector<std::string>& examples);

}  // namespace dibs
