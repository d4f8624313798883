#pragma once
// Formats of strings in schemas: which are known, and which texts they take.

#include <string_view>

namespace dibs::api {

/// Whether `format` means something for values of `type` ("" and "string" are the same here). A
/// format that does not is ignored when objects are judged and told in a warning when a definition
/// is written.
bool is_known_format(std::string_view type, std::string_view format);

/// Whether the text has the format. True for formats that are not known. Dashes in the name of a
/// format do not count.
bool has_format(std::string_view text, std::string_view format);

}  // namespace dibs::api
