#pragma once
// Which policies a request meets, through which of their bindings, with which parameters: what
// validating and mutating policies have in common.

#include <string>
#include <vector>

#include "server/plugins/admission_policies_request.h"
#include "server/plugins/admission_policies_source.h"
#include "server/plugins/plugins.h"

namespace dibs::server {

/// True of what policies are not asked about: policies themselves, since one that denies everything
/// could not be taken back, and what follows from a write that they have judged.
bool is_exempt_from_policies(const Write& write);

/// The keys under which policies or bindings are stored, "" where they are not served or their gate
/// is off.
std::string policies_prefix(const PluginSources& sources, std::string_view plural);

/// One policy to be asked through one binding, or the reason why that cannot be.
struct PolicyInvocation {
  const AdmissionPolicy* policy = nullptr;
  const PolicyBinding* binding = nullptr;  // null where the policy itself is at fault
  api::ServedAs served = {};               // the version that its rule names
  Value params = {};                       // null: none
  std::string fault = {};                  // not empty: all else is unset
};

/// In the order in which they are to be asked. Pointers are into the set.
std::vector<PolicyInvocation> select_policies(const PolicySet& set, PolicyRequest& request,
                                              const PluginSources& sources);

}  // namespace dibs::server
