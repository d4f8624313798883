#pragma once
// How values look on the disk, or to others who share the store: as they are, encrypted, in the
// encodings of others. In memory they are always in the server's own form.

#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::store {

/// Thread-safe.
class AtRest {
 public:
  virtual ~AtRest() = default;
  /// What is written for the value of a key.
  virtual Result<std::string> seal(std::string_view key, std::string_view value) const = 0;
  struct Opened {
    std::string value;
    bool stale = false;  // seal() would write it in another way today
  };
  /// The value of what was read. Errors: invalid, with what is missing.
  virtual Result<Opened> open(std::string_view key, std::string_view bytes) const = 0;
  /// Others who list the keys around this one could not read the value, which is in the server's
  /// own form. A store that is shared with them keeps it apart ("/registry.dibs/REST" for
  /// "/registry/REST"); a key is in one of the two places only.
  virtual bool apart(std::string_view /*key*/, std::string_view /*value*/) const { return false; }
};

/// What every encrypted value begins with, and no other: the rest says by what and which key.
inline constexpr std::string_view kSealed = "k8s:enc:";

}  // namespace dibs::store
