#pragma once
// The writes that bind a claim and a volume to each other.
//
// A binding is four writes in one order: the volume's claimRef, its phase, the claim's volumeName
// with the mark that it is complete, the claim's status. Each is left out when it is done already,
// so whoever comes after one that was stopped in between finishes what it finds. Each carries the
// resourceVersion of the object it was decided on: of two that bind the same volume one is refused.

#include <string_view>

#include "controllers/controller.h"

namespace dibs::controllers {

/// As the server is told who writes.
client::WriteOptions volume_writing(std::string_view subresource = "");

Result<> bind_volume(client::Client& client, const Value& volume, const Value& claim);
/// A volume that the binder chose is free again; one that a user reserved stays so.
Result<> unbind_volume(client::Client& client, const Value& volume);

/// The object as it is then. `message`: status.message.
Result<Value> set_volume_phase(client::Client& client, const Value& volume, std::string_view phase,
                               std::string_view message = "");
/// Capacity and modes are the volume's; none when it is null.
Result<Value> set_claim_phase(client::Client& client, const Value& claim, std::string_view phase,
                              const Value& volume = nullptr);

}  // namespace dibs::controllers
