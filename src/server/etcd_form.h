#pragma once
// Values in an etcd that a kube-apiserver reads and writes as well.
//
// What is written is the stored form (stored.h), which the other side takes for any JSON; where
// Kubernetes stores a kind in a version that its servers of the same release know and ours is
// younger, under that version's name. What is read may be
//   ours, which a look at its two ends tells: it is left as it is;
//   protobuf in its envelope, or JSON in any order, of any version of a built-in kind: decoded,
//     given the defaults of its version, converted to the version that is stored here;
//   JSON of a custom kind: brought into the order of the stored form;
//   of a kind that is not served here: left alone.
// Either may be encrypted (encryption.h).

#include <memory>

#include "base/result.h"
#include "server/options.h"
#include "store/at_rest.h"

namespace dibs::server {

/// `encryption` may be null. Errors: bad_request, of the options.
Result<std::shared_ptr<const store::AtRest>> make_etcd_form(
    const Options& options, std::shared_ptr<const store::AtRest> encryption);

}  // namespace dibs::server
