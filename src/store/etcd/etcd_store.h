#pragma once
// Objects on an etcd (v3), which others may share: other servers of ours, and kube-apiserver.
//
// The state is in memory as with every store (mvcc.h), fed by one watch (feed.h). The life of a
// commit: sealed; sent as one Txn, with as many others in flight as there are; answered by etcd at
// revision R; acknowledged when the watch has brought R into memory. A conflict is told when memory
// shows what beat the write. Revisions are etcd's, so the first of an empty store is not chosen
// here, and other keys of the same etcd take revisions as well.
//
// What is lost on the way is tried again, at other members, for some seconds. Where a transaction
// may have been done, that is found out first (write.h); one without expectations ends with
// Code::timeout then.

#include <memory>

#include "base/result.h"
#include "store/store.h"
#include "store/stores.h"

namespace dibs::store {

/// Connects and loads; waits some seconds for an etcd that is not there yet. Errors: bad_request
/// names the flag, unavailable.
Result<std::unique_ptr<Store>> open_etcd_store(const StoreOptions& options);

}  // namespace dibs::store
