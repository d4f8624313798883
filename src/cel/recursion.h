#pragma once
// For walks that recurse over trees: a step into a child must not take the stack of all the kinds
// of nodes that it might have been. What is marked so is not merged into its caller.

#define DIBS_OWN_FRAME [[gnu::noinline]]
