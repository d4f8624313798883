#pragma once
// Which Services a pod belongs to, and the other way round.
//
// A Service that comes, changes or goes leads to its own key. A pod leads to the keys of the
// Services of its namespace that select it, and a change of it only where endpoints show it: so an
// event costs no more than the Services of one namespace. A node that comes, or gets another zone,
// leads to the Services of its pods.

#include <string>
#include <vector>

#include "controllers/controller.h"

namespace dibs::controllers {

class ServicePods {
 public:
  /// Adds keys to `reconciler`. Made in a controller's constructor; all outlive it.
  ServicePods(Environment& environment, Reconciler& reconciler);

  /// The Service, where it has endpoints that follow its selector; nothing where it is gone.
  std::optional<Value> service(const std::string& key) const { return services_.get(key); }
  /// The Service's endpoints are those of the pods that it selects.
  static bool selects(const Value& service);
  std::vector<Value> pods_of(const Value& service) const;
  /// Null where it is not there.
  Value node_of(const Value& pod) const;
  void follow_nodes();

 private:
  void pod_changed(const Value& before, const Value& after);
  void add_services_of(const Value& pod);

  Reconciler& reconciler_;
  client::Informer& services_;
  client::Informer& pods_;
  client::Informer& nodes_;
};

}  // namespace dibs::controllers
