#pragma once
// Probes: expressions with what Kubernetes made of them, to be compared with what we make of them.
//
// A probe file is JSON of one of two forms. {device, probes: [{expression, outputType,
// estimatedCost, actualCost, match | matchError | compileError}]} asks one device many things;
// {cases: [{name, expression, driver, attributes, capacity, observed: {…}}]} brings a device per
// case, and one case alone may stand for a file. All say themselves which environment they mean:
// envType, listTypeAttributes, consumableCapacity, and release where it is not 1.36.

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

struct ProbeDifference {
  std::string name;               // of the case, or the expression
  std::vector<std::string> what;  // "actual cost 4, was 5"
};

struct ProbeReport {
  std::size_t same = 0;
  std::vector<ProbeDifference> different = {};
};

/// Messages of syntax errors are compared up to their first position: the rest lists tokens of a
/// grammar that is not ours. Errors: bad_request, for a file of another form.
Result<ProbeReport> run_probes(const json::Value& file);

/// The values as files of probes spell them ({"int": "7"}, {"mem": "1Gi"}) in the form of the API.
json::Value probe_device(const json::Value& spec);

}  // namespace dibs::api
