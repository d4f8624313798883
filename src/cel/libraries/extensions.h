#pragma once
// What an environment may have on top of the standard library; each is added on its own.

#include "cel/environment.h"

namespace dibs::cel {

// Extensions of the language that several implementations share.

/// charAt, indexOf, lastIndexOf, lowerAscii, upperAscii, replace, split, substring, trim, join;
/// from version 1 on format and strings.quote, from 3 on reverse; 4 words formats in another way
/// and refuses to search behind the end. `revised`: as of Kubernetes 1.37, where also the search
/// for the empty text looks at where it is to begin.
void add_strings(Environment& environment, int version = 4, bool revised = true);
/// slice, flatten, sort, sortBy, reverse, distinct, lists.range. `revised`: as of Kubernetes 1.37,
/// where ranges of a negative size are refused.
void add_lists(Environment& environment, bool revised = true);
/// sets.contains, sets.equivalent, sets.intersects.
void add_sets(Environment& environment);
/// optional.of and its methods, and the syntax a.?b, a[?b], [?a]; from version 2 on also first,
/// last, optional.unwrap and unwrapOpt.
void add_optionals(Environment& environment, int version = 2);
/// cel.bind.
void add_bindings(Environment& environment);
/// Macros over index and element, or key and value.
void add_two_variable_macros(Environment& environment);

// Extensions of Kubernetes.

/// isSorted, sum, min, max, indexOf, lastIndexOf of lists.
void add_kubernetes_lists(Environment& environment);
/// includes: an element of a list, or equal to what is no list.
void add_includes(Environment& environment);
/// find, findAll.
void add_regex(Environment& environment);
/// url, isURL and their parts.
void add_url(Environment& environment);
/// ip, cidr and what they know.
void add_network(Environment& environment);
void add_quantity(Environment& environment);
/// From version 1 on versions may be normalized: semver("v1.0", true).
void add_semver(Environment& environment, int version = 1);

}  // namespace dibs::cel
