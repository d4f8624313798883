#pragma once
// Named formats of text, as Kubernetes names and words them.
//
//   format.dns1123Label().validate("My-Name")    an optional list of what is wrong with the text
//   format.named("uuid")                         an optional format

#include "cel/environment.h"

namespace dibs::cel {

/// format.named, one function per format, and validate.
void add_formats(Environment& environment);

}  // namespace dibs::cel
