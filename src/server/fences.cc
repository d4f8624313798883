#include "server/fences.h"

#include <cstdint>
#include <set>

#include "base/strings.h"

namespace dibs::server {
namespace {

/// FNV-1a: every server, of every build, must come to the same number.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash ^ (hash >> 32);
}

}  // namespace

std::string Fences::key_of(std::string_view thing) const {
  const auto number = hash_of(thing) % kCount;
  return cat(kFencePrefix, family_, "/", number < 10 ? "0" : "", number);
}

// Why there is no hole. Let two writes take one thing, the first at revision r. Its transaction put
// the fence, so from r on the fence's version is r or later. The second is committed only if the
// version it names, v, is the fence's: v >= r. It names v only where v <= seen, so seen >= r. And
// its judge looked at the state after `seen` had been read, so he saw the first.
bool Fences::guard(Write& write, const std::vector<std::string>& things,
                   store::Revision seen) const {
  if (!shared_) return true;
  std::set<std::string> keys;
  for (const std::string& thing : things) keys.insert(key_of(thing));
  std::vector<store::Op> ops;
  for (const std::string& key : keys) {
    const auto record = store_.get(key);
    const store::Revision version = record ? record->modified : 0;
    if (version > seen) return false;
    ops.push_back({key, share(std::string("{}")), version});
  }
  write.fences.insert(write.fences.end(), ops.begin(), ops.end());
  return true;
}

}  // namespace dibs::server
