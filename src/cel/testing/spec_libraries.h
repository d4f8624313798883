#pragma once
// Extensions that the language's own vectors ask for and Kubernetes does not have.

#include "cel/environment.h"

namespace dibs::cel {

/// math.greatest, math.least, rounding, bits.
void add_math(Environment& environment);
/// base64.encode, base64.decode.
void add_encoders(Environment& environment);

}  // namespace dibs::cel
