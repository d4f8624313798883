#pragma once
// resource.k8s.io/v1 on servers that do not have it yet.
//
// Whoever reasons about claims and slices (scheduler, node agent, drivers) is written against v1.
// This transport asks the server once which versions of the group it serves. Where v1 is among
// them, requests pass as they are. Elsewhere, requests for v1 go to the newest version there is
// (v1beta2, v1beta1, v1alpha3 of 1.31), and objects are converted both ways: bodies of creates and
// updates, answers, lists, watch events. Patches pass with their paths changed only: parts write
// patches for metadata and reservations, which look the same in all of them.

#include <memory>

#include "client/client.h"
#include "client/transport.h"

namespace dibs::client {

std::unique_ptr<Transport> make_resource_transport(std::unique_ptr<Transport> inner);
/// `inner` must outlive it.
std::unique_ptr<Transport> make_resource_transport(Transport& inner);

/// A client that finds v1 wherever another one leads, which must outlive it.
class ResourceClient : public Client {
 public:
  explicit ResourceClient(Client& other)
      : ResourceClient(make_resource_transport(other.transport())) {}

 private:
  explicit ResourceClient(std::unique_ptr<Transport> transport)
      : Client(*transport), owned_(std::move(transport)) {}

  std::unique_ptr<Transport> owned_;
};

}  // namespace dibs::client
