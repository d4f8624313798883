#include "node/plugins/claim_cache.h"

#include <algorithm>

#include "base/strings.h"
#include "client/client.h"
#include "runtime/blocking.h"

namespace dibs::node {

bool DriverState::skips(std::string_view operation) const {
  return std::any_of(skip.begin(), skip.end(), [&](const std::string& skipped) {
    return skipped == operation || skipped == "*";
  });
}

Result<std::unique_ptr<ClaimCache>> ClaimCache::open(std::string path, runtime::Files& files) {
  std::unique_ptr<ClaimCache> cache(new ClaimCache(std::move(path), files));
  const auto text = files.read(cache->path_);
  if (!text && text.error().code() == Code::not_found) {
    DIBS_CHECK(files.write(cache->path_, empty_checkpoint()));
    return cache;
  }
  auto claims = text ? decode_checkpoint(*text) : Result<std::vector<ClaimInfo>>(text.error());
  if (!claims) {
    return Error::internal(cat(cache->path_, ": the checkpoint of prepared claims cannot be used: ",
                               claims.error().message(),
                               "; drain the node, remove the file and start again"));
  }
  const MutexLock lock(cache->mutex);
  for (auto& claim : *claims) {
    std::string key = client::key_of(claim.name_space, claim.name);
    cache->entries[std::move(key)] = std::move(claim);
  }
  return cache;
}

Result<> ClaimCache::persist() {
  std::uint64_t wanted = 0;
  {
    const MutexLock lock(mutex);
    wanted = version_;
  }
  const runtime::Blocking blocking;
  const MutexLock writing(write_mutex_);
  if (written_ >= wanted) return success();
  std::string text;
  {
    const MutexLock lock(mutex);
    wanted = version_;
    std::vector<const ClaimInfo*> claims;
    for (const auto& [key, claim] : entries) claims.push_back(&claim);
    text = encode_checkpoint(claims);
  }
  DIBS_CHECK(files_.write(path_, text));
  written_ = wanted;
  return success();
}

}  // namespace dibs::node
