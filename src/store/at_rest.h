#pragma once
// How values look on the disk, or to others who share the store: as they are, encrypted, in the
// encodings of others. In memory they are always in the server's own form.

#include <optional>
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

  /// Where other programs read the store too (etcd): whether some objects at the key are nothing
  /// that they could read, and whether this one is. It is kept apart then, at a key that they do
  /// not look at (etcd/keys.h); nobody sees that in memory.
  virtual bool may_be_apart(std::string_view /*key*/) const { return false; }
  virtual bool is_apart(std::string_view /*key*/, std::string_view /*value*/) const {
    return false;
  }
};

/// What every encrypted value begins with, and no other: the rest says by what and which key.
inline constexpr std::string_view kSealed = "k8s:enc:";

/// What stands in memory for bytes that nobody here can read: why, and the bytes. No reader takes
/// it for an object, whatever the bytes look like; written to where it came from it is the bytes.
struct Unreadable {
  std::string_view why;
  std::string_view bytes;
};
std::string unreadable_value(const Unreadable& of);
std::optional<Unreadable> as_unreadable(std::string_view value);

}  // namespace dibs::store
