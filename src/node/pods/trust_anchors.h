#pragma once
// The certificates that a projected clusterTrustBundle source names: of one bundle, or of all that
// a signer has and a selector takes.

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"

namespace dibs::node {

/// PEM, each certificate once, in the order of their text. Asks the server and waits. "" where
/// there are none and the source is optional.
Result<std::string> trust_anchors(client::Client& client, const json::Value& source);

/// Whether a volume of the pod has such a source: it has to be looked at again from time to time.
bool wants_trust_anchors(const json::Value& pod);

/// A label selector as the query of a list has it.
std::string selector_query(const json::Value& selector);
/// The certificates in the texts, each once.
std::string merged_certificates(const std::vector<std::string>& texts);

}  // namespace dibs::node
