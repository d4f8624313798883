#pragma once
// The flags of commands that can keep objects on an etcd.

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command_line.h"
#include "store/stores.h"

namespace dibs::cli {

struct EtcdFlags {
  store::EtcdOptions options = {};
  std::string password_file = {};
};

Flags etcd_flags(EtcdFlags& flags);

/// What they say, with the password read. Errors: bad_request for a file that cannot be read, and
/// for flags that mean nothing because `store` (of --store) is another.
Result<store::EtcdOptions> etcd_options(const EtcdFlags& flags, std::string_view store);

}  // namespace dibs::cli
