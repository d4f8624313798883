#include "store/etcd/keys.h"

#include "base/strings.h"

namespace dibs::store::etcd {
namespace {

constexpr std::string_view kPublic = "/registry/";
constexpr std::string_view kPrivate = "/registry.dibs/";

std::string clean(std::string_view prefix) {
  while (!prefix.empty() && prefix.back() == '/') prefix.remove_suffix(1);
  while (!prefix.empty() && prefix.front() == '/') prefix.remove_prefix(1);
  return cat("/", prefix);
}

}  // namespace

Keys::Keys(std::string_view prefix)
    : public_(clean(prefix) == "/" ? "/" : clean(prefix) + "/"),
      private_(cat(std::string_view(public_).substr(0, public_.size() - 1), ".dibs/")),
      apart_(private_ + "registry/"),
      first_(private_),
      end_(cat(std::string_view(public_).substr(0, public_.size() - 1), "0")),
      marker_(private_ + "marker"),
      barrier_(private_ + "barrier"),
      hand_(private_ + "hand"),
      probe_(public_ + "health") {}

Result<> Keys::check(std::string_view key) {
  if (key.starts_with(kPublic) || key.starts_with(kPrivate)) return success();
  return Error::invalid(cat("key ", quoted(key), ": must begin with ", kPublic, " or ", kPrivate));
}

std::string Keys::on_etcd(std::string_view key, bool apart) const {
  if (key.starts_with(kPrivate)) return cat(private_, key.substr(kPrivate.size()));
  return cat(apart ? apart_ : public_, key.substr(kPublic.size()));
}

std::optional<Keys::Place> Keys::in_memory(std::string_view key) const {
  if (key.starts_with(public_)) return Place{cat(kPublic, key.substr(public_.size())), false};
  if (key.starts_with(apart_)) return Place{cat(kPublic, key.substr(apart_.size())), true};
  if (key == marker_ || key == barrier_ || key == hand_) return std::nullopt;
  if (key.starts_with(private_)) return Place{cat(kPrivate, key.substr(private_.size())), false};
  return std::nullopt;
}

}  // namespace dibs::store::etcd
