// Any bytes as a protobuf body, with its envelope or without.
#include "api/schema/protobuf.h"
#include "fuzz/targets.h"

DIBS_FUZZ_ENTRY(dibs::api::fuzz_protobuf)
