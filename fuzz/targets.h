#pragma once
// The entry functions of the fuzzers: each takes any bytes, and stops the process when a promise of
// the code under test does not hold. They return 0.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace dibs::fuzz {

int fuzz_json(const std::uint8_t* data, std::size_t size);
int fuzz_yaml(const std::uint8_t* data, std::size_t size);
int fuzz_patch(const std::uint8_t* data, std::size_t size);
int fuzz_quantity(const std::uint8_t* data, std::size_t size);
int fuzz_http(const std::uint8_t* data, std::size_t size);
int fuzz_http2(const std::uint8_t* data, std::size_t size);
int fuzz_websocket(const std::uint8_t* data, std::size_t size);
int fuzz_spdy(const std::uint8_t* data, std::size_t size);
int fuzz_protobuf(const std::uint8_t* data, std::size_t size);
int fuzz_selectors(const std::uint8_t* data, std::size_t size);
int fuzz_strategic(const std::uint8_t* data, std::size_t size);
int fuzz_apply(const std::uint8_t* data, std::size_t size);
int fuzz_structural(const std::uint8_t* data, std::size_t size);
int fuzz_cel_compile(const std::uint8_t* data, std::size_t size);
int fuzz_cel_evaluate(const std::uint8_t* data, std::size_t size);
int fuzz_cdi(const std::uint8_t* data, std::size_t size);
int fuzz_image(const std::uint8_t* data, std::size_t size);
int fuzz_cni(const std::uint8_t* data, std::size_t size);
int fuzz_plugin(const std::uint8_t* data, std::size_t size);
int fuzz_driver(const std::uint8_t* data, std::size_t size);
int fuzz_checkpoint(const std::uint8_t* data, std::size_t size);
int fuzz_net_cni(const std::uint8_t* data, std::size_t size);
int fuzz_net_host(const std::uint8_t* data, std::size_t size);
int fuzz_net_objects(const std::uint8_t* data, std::size_t size);
int fuzz_net_addresses(const std::uint8_t* data, std::size_t size);
int fuzz_backup(const std::uint8_t* data, std::size_t size);
int fuzz_stored(const std::uint8_t* data, std::size_t size);
int fuzz_dns(const std::uint8_t* data, std::size_t size);
int fuzz_etcd(const std::uint8_t* data, std::size_t size);
int fuzz_html(const std::uint8_t* data, std::size_t size);
int fuzz_figures(const std::uint8_t* data, std::size_t size);
int fuzz_identity(const std::uint8_t* data, std::size_t size);

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace dibs::fuzz

#ifdef DIBS_FUZZER
#define DIBS_FUZZ_ENTRY(function)                                                     \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    return function(data, size);                                                      \
  }
#else
#define DIBS_FUZZ_ENTRY(function)
#endif
