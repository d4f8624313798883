#pragma once
// Warning headers: what a request is told beside its answer.

#include <string>
#include <vector>

#include "net/http.h"

namespace dibs::server {

/// Each text once, in the form of RFC 7234. As Kubernetes does it: what is no text or holds control
/// characters is left out, and where all of them are longer than 4,096 characters together, each is
/// cut to 256 and the rest is dropped, since clients bound the headers that they read.
void add_warnings(const std::vector<std::string>& texts, net::Headers& headers);

}  // namespace dibs::server
