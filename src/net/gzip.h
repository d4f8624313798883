#pragma once
// gzip bodies: what an API server sends when asked with Accept-Encoding, and what a client takes.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::net {

/// At level 4, which is what Kubernetes uses: close to the best ratio on JSON at a third of its
/// time.
std::string gzip(std::string_view bytes);

/// The same for a body that is made piece by piece.
class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// What is ready of the packed bytes, perhaps nothing yet. After `last` nothing is added.
  std::string add(std::string_view bytes, bool last);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Errors: bad_request on broken input, too_large above `max_size` bytes of output.
Result<std::string> gunzip(std::string_view bytes, std::size_t max_size);

/// True when an Accept-Encoding header allows gzip (q=0 forbids it).
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace dibs::net
