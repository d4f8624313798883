// Any bytes as WebSocket frames, in pieces of the size that the first byte says.
#include "net/http_fuzz.h"
#include "fuzz/targets.h"

DIBS_FUZZ_ENTRY(dibs::net::fuzz_websocket)
