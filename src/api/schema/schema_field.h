#pragma once
// The line of a field in a schema text, and the releases that lines name. Of this library alone.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"
#include "base/result.h"

namespace dibs::api {

/// Minor numbers of releases, both ends included; 0 is open.
struct Releases {
  int first = 0;
  int last = 0;
};

/// "27-30", "31-", "-33", "30"
Releases releases_of(std::string_view text);
bool covers(Releases releases, int minor);

/// What the flags of a field say of its schema.
struct TypeFlags {
  std::string_view go;
  std::string_view enum_values;
  std::string_view keys;
  bool has_enum = false;
  bool set = false;
  bool atomic = false;
  bool granular = false;
  bool wrapped = false;

  std::string key() const;
};

/// A line of a field, as far as its flags say it.
struct FieldText {
  Field field;
  TypeFlags type;
  Releases releases;
  bool keep = false;
  bool omit = false;
  bool beside = false;
};

/// Reads the flags after name, type and number. Errors: internal.
Result<> read_flags(const std::vector<std::string_view>& words, FieldText& text);

}  // namespace dibs::api
