// Any bytes as SPDY frames, in pieces of the size that the first byte says.
#include "fuzz/targets.h"
#include "net/http_fuzz.h"

DIBS_FUZZ_ENTRY(dibs::net::fuzz_spdy)
