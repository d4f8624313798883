// What ThreadSanitizer must not look at: gRPC comes compiled without it, and hands our objects from
// one thread to another under locks that it cannot see. This file is linked because channels and
// servers name it.

#include "rpc/grpc_bytes.h"

#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "race:absl\n"
         "race:grpc\n"
         "race:dibs::rpc::\n";
}
#endif

namespace dibs::rpc::internal {

void name_tsan() {}

}  // namespace dibs::rpc::internal
