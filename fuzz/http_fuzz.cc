// Any bytes as what comes in on a connection, in pieces of the size that the first byte says.
#include "net/http_fuzz.h"
#include "fuzz/targets.h"

DIBS_FUZZ_ENTRY(dibs::net::fuzz_http)
