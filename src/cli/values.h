#pragma once
// How the values of a store are kept: as they are or encrypted, and on an etcd as a kube-apiserver
// has them, which may share them.

#include <memory>
#include <string>
#include <string_view>

#include "api/schema/features.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "server/options.h"
#include "store/at_rest.h"
#include "store/stores.h"

namespace dibs::cli {

/// `store` is its name, `encryption` the file of --encryption-provider-config, "" for none. Null
/// where values are as they are. `random` must outlive what is returned. Errors name the flag.
Result<std::shared_ptr<const store::AtRest>> form_of_values(std::string_view store,
                                                            const std::string& encryption,
                                                            const store::EtcdOptions& etcd,
                                                            const server::Options& options,
                                                            runtime::Random& random);

/// The gates of a release, "" being the newest. Errors name the flag: `release_flag` or
/// --feature-gates.
Result<api::Features> parse_gates(const std::string& release, const std::string& gates,
                                  std::string_view release_flag = "--release");

}  // namespace dibs::cli
