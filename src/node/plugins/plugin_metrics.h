#pragma once
// What a node counts about drivers and claims, under the kubelet's names.

#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "rpc/channel.h"

namespace dibs::node {

class PluginMetrics {
 public:
  /// Null: counts nothing.
  explicit PluginMetrics(metrics::Registry* registry);

  bool enabled() const { return families_ != nullptr; }
  void operation(std::string_view name, bool failed, Duration took);
  void call(std::string_view driver, std::string_view method, rpc::Code code, Duration took);
  void claims_in_use(std::string_view driver, std::size_t count);
  void skipped_prepare(std::string_view driver);
  void skipped_unprepare(std::string_view driver);

 private:
  struct Families;
  std::shared_ptr<Families> families_;
};

}  // namespace dibs::node
