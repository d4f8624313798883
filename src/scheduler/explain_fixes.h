#pragma once
// What would help a pod that finds no node: changes after which nodes of some group could take it,
// the cheapest for whoever makes them first.
//
// Works on an explanation whose groups are complete (explain.cc), and asks nothing anew.

#include "scheduler/explain.h"

namespace dibs::scheduler {

/// Fills `made.fixes`.
void find_fixes(Explanation& made, const Devices& devices, const Pod& pod,
                const ExplainScope& scope);

}  // namespace dibs::scheduler
