#pragma once
// Paths that are not about resources: health, version, metrics, discovery, OpenAPI, keys.

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "json/value.h"
#include "net/http.h"
#include "server/context.h"
#include "server/extensions.h"
#include "server/health.h"
#include "server/options.h"

namespace dibs::server {

class Routes {
 public:
  struct Sources {
    const Options* options = nullptr;
    metrics::Registry* metrics = nullptr;
    const Health* health = nullptr;
    std::function<json::Value()> jwks;
    std::function<ExtensionsPtr()> extensions;
    std::function<std::string()> priority_levels;
    std::function<std::vector<std::string>()> jwt_algorithms;
  };
  explicit Routes(Sources sources) : sources_(std::move(sources)) {}

  Response handle(const Context& context);

 private:
  Response discovery(const Context& context, std::string_view path);
  Response openapi(const Context& context, std::string_view path);

  struct Document {
    std::string body;
    std::string etag;
  };
  using DocumentPtr = std::shared_ptr<const Document>;
  /// What a document was made of.
  struct Generations {
    std::uint64_t resources = 0;
    std::uint64_t extensions = 0;
    bool operator==(const Generations&) const = default;
  };
  static DocumentPtr with_digest(std::string body);
  /// Null where nobody serves it.
  DocumentPtr make_openapi(const api::Catalog& catalog, std::string_view path, bool protobuf,
                           const Extensions& extensions) const;
  /// Null where there is none of these generations.
  DocumentPtr find(const std::string& key, const Generations& wanted) const;
  void keep(const std::string& key, const Generations& of, DocumentPtr document);

  Sources sources_;
  struct Cached {
    Generations of;
    DocumentPtr document;
  };
  /// Taken on io threads: never while a document is made.
  mutable Mutex mutex_;
  std::map<std::string, Cached> cache_ DIBS_GUARDED_BY(mutex_);
  /// Of documents of OpenAPI, which take long. Before `mutex_`.
  Mutex making_;
};

}  // namespace dibs::server
