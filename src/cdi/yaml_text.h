#pragma once
// YAML in the form of Go's yaml.v3, which writes the files of other drivers: four blanks a level,
// two after a dash, fields in their order. Of this library alone; json::write_yaml has the form of
// kubectl.

#include <string>

#include "json/value.h"

namespace dibs::cdi {

/// Members in their order but those of "annotations", which are a map: sorted, with numbers by
/// size. A text whose first line is blank is quoted: the other library cannot read back its own.
std::string ordered_yaml(const json::Value& value);

}  // namespace dibs::cdi
