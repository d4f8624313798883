#pragma once
// Names of images: `busybox` stands for `docker.io/library/busybox:latest`.

#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs {

struct ImageReference {
  std::string repository = {};  // docker.io/library/busybox
  std::string tag = {};         // "" with a digest alone
  std::string digest = {};      // sha256:..., or ""

  /// repository:tag@digest, what is there of it.
  std::string text() const;
};

/// With the default registry and tag. Errors read as those of other runtimes: "invalid reference
/// format: repository name (library/Not A Name) must be lowercase".
Result<ImageReference> parse_image_reference(std::string_view name);

/// sha256: and 64 hexadecimal digits.
bool is_digest(std::string_view text);

}  // namespace dibs
