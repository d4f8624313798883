// Any JSON as a strategic merge patch of a pod: it is refused or gives something that decoding can
// judge, and the pod stays as it was.
#include "api/merge/strategic_merge.h"

#include "fuzz/pod.h"

namespace dibs::fuzz {

int fuzz_strategic(const std::uint8_t* data, std::size_t size) {
  const auto patch = json::parse({reinterpret_cast<const char*>(data), size});
  if (!patch.ok()) return 0;
  static const std::string before = json::write(pod());
  const auto patched = api::strategic_merge(pod(), *patch, pod_schema());
  require(json::write(pod()) == before, "a patch leaves the object as it was");
  if (!patched.ok()) {
    require(!patched.error().message().empty(), "an error has a message");
    return 0;
  }
  std::vector<std::string> strict;
  const auto decoded = api::decode(*patched, pod_schema(), api::Strictness::warn, strict);
  if (!decoded.ok()) return 0;
  // Directives may be refused on what they have made, but nothing more may happen.
  (void)api::strategic_merge(*decoded, *patch, pod_schema()).ok();
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_strategic)
