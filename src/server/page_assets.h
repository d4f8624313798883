#pragma once
// The files of the page (web/), packed and compiled in.

#include <span>
#include <string_view>

namespace dibs::server {

struct PageAsset {
  std::string_view name;   // below /dibs/: "index.html", "assets/page-1f3c.js"
  std::string_view type;   // of its content
  std::string_view etag;   // with its quotes
  std::string_view bytes;  // gzip
};

/// Empty where the binary was built without them. The build writes this function
/// (cmake/page.cmake).
std::span<const PageAsset> page_assets();

}  // namespace dibs::server
