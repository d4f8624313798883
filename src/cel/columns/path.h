#pragma once
// What a program reads of a row: a variable, then names and indexes that are constants.

#include <span>
#include <string>
#include <vector>

#include "cel/value.h"

namespace dibs::cel {

struct PathStep {
  Value key;
  /// The last step may ask `key in container` instead of reading.
  bool contains = false;
};

struct ColumnPath {
  std::uint32_t variable = 0;
  std::vector<PathStep> steps;

  /// The same for two paths that read the same.
  std::string name() const;
};

/// How far a read came. Together with the step and what lay there, it decides what a select, an
/// index, a has() or an optional select along the path gives.
enum class ReadState : std::uint8_t {
  value,
  no_key,      // of a map
  no_field,    // of an object
  no_element,  // of a list
  stuck,       // this value has no parts, or none of that kind
};

struct PathRead {
  ReadState state = ReadState::value;
  std::uint32_t step = 0;  // that could not be made
  Value value;             // the end of the path, or where it is stuck
};

PathRead read_path(const ColumnPath& path, std::span<const Value> variables);

/// Appends bytes that are the same for two values only if no expression can tell them apart. True:
/// an address is among them, so that they mean something only as long as the value lives.
bool append_identity(std::string& out, const Value& value);
bool append_identity(std::string& out, const PathRead& read);

}  // namespace dibs::cel
