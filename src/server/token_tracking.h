#pragma once
// When tokens of Secrets were used: a label of the Secret has the day, and a ConfigMap the day
// since which that is written down. Without it nobody could tell an old token that is used from one
// that may go.

#include "base/time.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// The ConfigMap, of a cluster that begins now.
Value token_tracking_object(Time now);
/// What is to be written in its place; null where it holds a day.
Value token_tracking_mended(const Value& there, const Value& wanted, Time now);

/// Writes the day into the Secret, unless it is there. Waits for nothing; where somebody else
/// writes to the Secret at the same time, the next use is written down.
void note_token_use(store::Store& store, const Resource& secrets, const Value& secret, Time now);

}  // namespace dibs::server
