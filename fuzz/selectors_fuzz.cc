// Any bytes as a label selector and as a field selector.
#include "api/merge/selectors.h"
#include "fuzz/targets.h"

DIBS_FUZZ_ENTRY(dibs::api::fuzz_selectors)
