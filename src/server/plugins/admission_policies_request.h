#pragma once
// A request under admission, in the words of admission policies.
//
// Policies speak of what the API shows: a resource and its sub-resource in a version, the body of
// that very sub-resource (a Scale, a Binding), a Namespace that lies in itself. What the server
// hands to its plugins is the stored object; this is the way from one to the other, taken only as
// far as somebody asks.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/expressions/policy_match.h"
#include "api/expressions/policy_program.h"
#include "server/plugins/plugins.h"

namespace dibs::server {

/// As policies and webhooks are told it: "CREATE".
std::string_view operation_name(const Write& request);

class PolicyRequest {
 public:
  PolicyRequest(const Write& request, const PluginSources& sources);

  const api::MatchQuestion& question() const { return question_; }
  const ResourceSet& resources() const { return *resources_; }
  /// For messages: what was not named when many are deleted at once is "Unknown".
  std::string shown_name() const { return name_.empty() ? "Unknown" : name_; }

  /// The namespace, or null. Errors: not_found.
  Result<Value> name_space();
  /// The objects and the request in the version that a rule matched, and nothing else.
  /// Errors: of a conversion webhook.
  Result<api::PolicyInput> view(const api::ServedAs& served) const;
  /// All but the parameters, in that version.
  Result<api::PolicyInput> input(const api::ServedAs& served);
  /// The object of the write is another one now.
  void forget() { inputs_.clear(); }

 private:
  Result<Value> namespace_labels();
  const std::vector<api::ServedAs>& equivalents();
  Result<Value> shown(const Resource& resource, const Value* stored) const;
  Value request_value(const api::ServedAs& served, const Resource& resource) const;

  const Write& request_;
  const PluginSources& sources_;
  ResourceSetPtr resources_;
  std::string operation_;
  std::string name_space_;
  std::string name_;
  bool is_namespace_;
  Value binding_;  // body of such a sub-resource
  api::MatchQuestion question_;
  bool looked_ = false;
  Value namespace_;
  bool listed_ = false;
  std::vector<api::ServedAs> equivalents_;
  std::shared_ptr<const cel::Authorize> authorize_;
  std::map<std::string, api::PolicyInput> inputs_;  // by version
};

}  // namespace dibs::server
