#pragma once
// The device API as our own parts see it, whatever the server serves: each object in the form of
// its own model.
//
// Whoever reasons about claims and slices (scheduler, controllers, node agent, drivers) asks for
// resource.k8s.io/v1. What is structured comes as v1; what is classic (class and driver, named
// resources) comes as v1alpha2, with its own fields: api::is_classic() tells them apart
// (api/kinds/resource/versions/model.h). This transport asks the server once which versions of the
// group it serves:
//
// - v1: requests pass. Reads of claims, templates and slices ask for the form that is stored, which
//   our server knows; any other answers as if it had not been asked. A create or an update whose
//   body says v1alpha2 goes to that version.
// - v1beta2, v1beta1 or v1alpha3 of 1.31 is the newest: requests go there, and objects are
//   converted both ways: bodies of creates and updates, answers, lists, watch events. Patches pass
//   with their paths changed only: parts write patches for metadata and reservations, which look
//   the same in all of them.
// - v1alpha2 alone (1.27 to 1.30): requests go there, and objects pass as they are.
//
// Patches and deletes of a classic object, and the kinds that only its model has (ResourceClass,
// PodSchedulingContext, …), are asked for as v1alpha2, which passes everywhere.

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
