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
#include "server/options.h"

namespace dibs::server {

class Routes {
 public:
  struct Sources {
    const Options* options = nullptr;
    metrics::Registry* metrics = nullptr;
    std::function<Result<>()> store_health;
    std::function<Result<>()> store_room;
    std::function<json::Value()> jwks;
    std::function<bool()> leaving;
  };
  explicit Routes(Sources sources) : sources_(std::move(sources)) {}

  Response handle(const Context& context);

 private:
  Result<> store_state(bool ready) const;
  Response health(const Context& context, std::string_view which, std::string_view check) const;
  Response discovery(const Context& context, std::string_view path);
  Response openapi(const Context& context, std::string_view path);

  Sources sources_;
  struct Cached {
    std::uint64_t generation = 0;
    std::string body;
    std::string etag;
  };
  Mutex mutex_;
  // Documents of the current resource set.
  std::map<std::string, Cached> cache_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
