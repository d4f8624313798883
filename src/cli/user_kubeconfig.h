#pragma once
// Kubeconfigs that know a cluster and lie outside of its folder: the user's own, the first file of
// $KUBECONFIG or ~/.kube/config, and those of --kubeconfig-out.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::cli {

/// What join_user_kubeconfig() would refuse, before there is a cluster. Changes nothing.
Result<> check_user_kubeconfig(const std::string& context, const std::string& folder);
/// Puts the cluster, user and context of `kubeconfig`, which all have the name `context`, into the
/// user's file, and makes it the current context. Entries of that name that are another's stay:
/// that is an error that says so. Returns the file.
Result<std::string> join_user_kubeconfig(const std::string& context, const std::string& kubeconfig,
                                         const std::string& folder);
/// Takes them out again, where they are those of the cluster in `folder`: of the user's file and of
/// `others`, which were his when they were joined. The context before it is the current one again.
Result<> leave_user_kubeconfig(const std::string& context, const std::string& folder,
                               std::vector<std::string> others = {});

/// Takes the cluster, user and context out of a file that was made for them, where they are still
/// those of the authority, and removes the file with the last of its entries: whoever has it is the
/// administrator. Errors: of reading and writing.
Result<> remove_kubeconfig(const std::string& file, const std::string& context,
                           std::string_view authority_pem);

}  // namespace dibs::cli
