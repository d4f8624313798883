#pragma once
// Numbers between text and binary in Go's forms. Of the json library alone.

#include <string>
#include <string_view>

namespace dibs::json {

/// Reads a decimal number of JSON's form (a leading + and digits missing on one side of the point
/// are fine too). False when it is too large for a double; too small gives zero.
bool to_double(std::string_view number, double& out);

/// As encoding/json: plain from 1e-6 up to 1e21, else with an exponent. Infinities and NaN become
/// null.
void append_json_double(std::string& out, double number);

/// As strconv's 'g' with the fewest digits that read back: an exponent below 1e-4 and from 1e6 on
/// (1e+06). With `single`, the fewest digits that read back as a float.
void append_short_double(std::string& out, double number, bool single = false);

}  // namespace dibs::json
