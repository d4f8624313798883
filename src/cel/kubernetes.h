#pragma once
// The environment that Kubernetes gives to its expressions.

#include "cel/environment.h"

namespace dibs::cel {

/// Everything that Kubernetes 1.36 turns on for stored expressions, without variables: the standard
/// library, optionals, the extensions for strings, lists and sets, two-variable macros, and its own
/// libraries; literals are checked, aggregates must be of one type. cel.bind is not in it.
Environment kubernetes_environment();

}  // namespace dibs::cel
