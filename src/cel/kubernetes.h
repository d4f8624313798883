#pragma once
// The environment that Kubernetes gives to its expressions.

#include "base/release.h"
#include "cel/environment.h"

namespace dibs::cel {

/// Everything that Kubernetes 1.`minor` turns on for stored expressions, without variables: the
/// standard library and what that release adds to it; aggregates must be of one type, and from 1.29
/// on literals are checked. New expressions are given the environment of the release before, which
/// then behaves and costs as the implementation of `release` (0: minor) does. Not in it: cel.bind,
/// and what only some of the users of expressions have.
Environment kubernetes_environment(int minor = kNewestRelease, int release = 0);

}  // namespace dibs::cel
