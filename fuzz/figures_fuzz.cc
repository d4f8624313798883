// Any bytes as what a node says that it and its pods use: bounded, and numbers are numbers.
#include <string_view>

#include "fuzz/targets.h"
#include "server/node_usage.h"

namespace dibs::fuzz {

int fuzz_figures(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = server::read_resource_metrics(text, Time{5'000'000'000});
  std::size_t count = 0;
  for (const auto& [pod, containers] : read.pods) {
    require(pod.find('/') != std::string::npos, "a pod has a namespace");
    count += containers.size();
  }
  require(count <= size / 10 + 1, "each container is a line");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_figures)
