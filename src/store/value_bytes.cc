#include "store/value_bytes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace dibs::store {

/// The bytes follow it in memory.
class ValueBase {
 public:
  static ValueBase* make(std::string_view bytes) {
    void* block = ::operator new(sizeof(ValueBase) + bytes.size());
    auto* made = new (block) ValueBase(static_cast<std::uint32_t>(bytes.size()));
    std::memcpy(reinterpret_cast<char*>(made + 1), bytes.data(), bytes.size());
    return made;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this + 1), size_}; }
  void hold() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(this);
  }

 private:
  explicit ValueBase(std::uint32_t size) : size_(size) {}
  std::atomic<std::uint32_t> refs_{1};
  std::uint32_t size_;
};

namespace {

/// Below it nothing is gained, above it comparing takes too long for one write.
constexpr std::size_t kSmallest = 200;
constexpr std::size_t kLargest = 32 * 1024;
/// Of each kind of key; how many of them are compared with; kinds.
constexpr std::size_t kBases = 6;
constexpr std::size_t kCompared = 2;
constexpr std::size_t kMostKinds = 512;
/// A base serves well where no more than one part in so many is left of the value; else a value
/// becomes a base itself, ever more rarely as that does not help.
constexpr std::size_t kWell = 10;
constexpr std::size_t kMostPatience = 4096;
/// What two values must have in common to be copied, and how far ahead it is looked for.
constexpr std::size_t kShortest = 12;
constexpr std::size_t kAhead = 1024;
/// How many bytes of the base are searched in all: a value made of quotes would have each of them
/// looked for, and the one thread that writes would stand still.
constexpr std::size_t kMostSearched = 64 * 1024;

/// Of "/registry/pods/ns/name" the first two parts.
std::string_view kind_of(std::string_view key) {
  std::size_t end = 0;
  for (int parts = 0; parts < 3 && end != std::string_view::npos; ++parts) {
    end = key.find('/', parts == 0 ? 0 : end + 1);
  }
  return key.substr(0, end);
}

std::size_t common(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t at = 0;
  for (; at + 8 <= most; at += 8) {
    std::uint64_t x = 0;
    std::uint64_t y = 0;
    std::memcpy(&x, a.data() + at, 8);
    std::memcpy(&y, b.data() + at, 8);
    if (x != y) {
      if constexpr (std::endian::native == std::endian::little) {
        return at + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
      }
      break;
    }
  }
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

void put_number(std::string& out, std::size_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

std::size_t get_number(const char*& at) {
  std::size_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    number |= std::size_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
}

/// Writes `value` as steps: how many bytes are its own, those, how many of the base are left out
/// and how many are copied then. False when that takes more than half the room.
bool encode(std::string_view base, std::string_view value, std::string& out) {
  const std::size_t most = value.size() / 2;
  std::size_t own = 0;      // where the bytes that are its own begin
  std::size_t at = 0;       // in the value
  std::size_t base_at = 0;  // in the base
  std::size_t done = 0;     // of the base, by the steps so far
  std::size_t searched = 0;
  while (at < value.size()) {
    const std::size_t same = common(base.substr(base_at), value.substr(at));
    if (same >= kShortest || at + same == value.size()) {
      put_number(out, at - own);
      out.append(value.substr(own, at - own));
      put_number(out, base_at - done);
      put_number(out, same);
      at += same;
      base_at += same;
      done = base_at;
      own = at;
    }
    // Texts differ up to their end: go on at the next quote of both, or where the base has what
    // follows the quote.
    std::size_t quote = at < value.size() ? value.find('"', at) : std::string_view::npos;
    const std::size_t other = base.find('"', base_at);
    bool found = false;
    for (int tries = 0; tries < 4 && quote != std::string_view::npos; ++tries) {
      const std::string_view next = value.substr(quote, kShortest);
      if (other != std::string_view::npos && base.substr(other, kShortest) == next) {
        base_at = other;
        found = true;
      } else if (next.size() == kShortest) {
        const std::size_t room = std::min(kAhead, base.size() - base_at);
        if ((searched += room) > kMostSearched) return false;
        const void* ahead = ::memmem(base.data() + base_at, room, next.data(), next.size());
        if (ahead != nullptr) {
          base_at = static_cast<std::size_t>(static_cast<const char*>(ahead) - base.data());
          found = true;
        }
      }
      if (found) {
        at = quote;
        break;
      }
      quote = value.find('"', quote + 1);
    }
    if (!found) {
      if (quote == std::string_view::npos) break;
      at = quote;
    }
    if (out.size() + (at - own) > most) return false;
  }
  if (own < value.size()) {
    put_number(out, value.size() - own);
    out.append(value.substr(own));
    put_number(out, 0);
    put_number(out, 0);
  }
  return out.size() <= most;
}

}  // namespace

class ValuePool::Bases {
 public:
  Bases() = default;
  ~Bases() {
    const MutexLock lock(mutex_);
    clear();
  }
  Bases(const Bases&) = delete;
  Bases& operator=(const Bases&) = delete;

  /// Bases of about this size, closest first. The caller drops them.
  std::size_t candidates(std::string_view kind, std::size_t size,
                         std::array<ValueBase*, kCompared>& out) {
    const MutexLock lock(mutex_);
    const auto found = kinds_.find(kind);
    if (found == kinds_.end()) return 0;
    std::array<std::size_t, kCompared> apart{};
    std::size_t count = 0;
    for (ValueBase* base : found->second.bases) {
      if (base == nullptr) continue;
      const std::size_t other = base->bytes().size();
      const std::size_t by = other > size ? other - size : size - other;
      if (by * 3 >= size) continue;
      std::size_t place = count;
      while (place > 0 && by < apart[place - 1]) --place;
      if (place == kCompared) continue;
      count = std::min(count + 1, kCompared);
      for (std::size_t i = count - 1; i > place; --i) {
        apart[i] = apart[i - 1];
        out[i] = out[i - 1];
      }
      apart[place] = by;
      out[place] = base;
    }
    for (std::size_t i = 0; i < count; ++i) out[i]->hold();
    return count;
  }

  /// The base was of use: `well`, or might another one, like the value at hand, do better? True
  /// when it should become one, too: that is tried now and then.
  bool served(std::string_view kind, const ValueBase* base, bool well) {
    const MutexLock lock(mutex_);
    const auto found = kinds_.find(kind);
    if (found == kinds_.end()) return false;
    auto& bases = found->second.bases;
    const auto at = std::find(bases.begin(), bases.end(), base);
    if (at != bases.end()) std::rotate(bases.begin(), at, at + 1);
    Kind& counts = found->second;
    if (well || ++counts.poor < counts.patience) return false;
    counts.poor = 0;
    counts.patience = std::min(counts.patience * 2, kMostPatience);
    return true;
  }

  void add(std::string_view kind, ValueBase* base) {
    const MutexLock lock(mutex_);
    if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) clear();
    auto& bases = kinds_.try_emplace(std::string(kind)).first->second.bases;
    if (bases.back() != nullptr) bases.back()->drop();
    std::rotate(bases.begin(), bases.end() - 1, bases.end());
    bases.front() = base;
  }

 private:
  struct Kind {
    std::array<ValueBase*, kBases> bases{};  // the last that served first
    std::size_t poor = 0;                    // how often one served, but not well
    std::size_t patience = 1;                // how often that may be until another is tried
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  void clear() DIBS_REQUIRES(mutex_) {
    for (auto& [name, kind] : kinds_) {
      for (ValueBase* base : kind.bases) {
        if (base != nullptr) base->drop();
      }
    }
    kinds_.clear();
  }

  Mutex mutex_;
  std::unordered_map<std::string, Kind, Hash, std::equal_to<>> kinds_ DIBS_GUARDED_BY(mutex_);
};

ValuePool::ValuePool() : bases_(std::make_unique<Bases>()) {}
ValuePool::~ValuePool() = default;

ValueBytes::ValueBytes(ValuePool& pool, std::string_view key, std::string_view bytes)
    : key_size_(static_cast<std::uint32_t>(key.size())),
      size_(static_cast<std::uint32_t>(bytes.size())) {
  std::string_view kept = bytes;
  thread_local std::string steps;
  if (bytes.size() >= kSmallest && bytes.size() <= kLargest) {
    const std::string_view kind = kind_of(key);
    ValuePool::Bases& bases = *pool.bases_;
    std::array<ValueBase*, kCompared> near{};
    const std::size_t count = bases.candidates(kind, bytes.size(), near);
    for (std::size_t i = 0; i < count; ++i) {
      if (base_ == nullptr) {
        steps.clear();
        if (encode(near[i]->bytes(), bytes, steps)) {
          base_ = near[i];
          continue;
        }
      }
      near[i]->drop();
    }
    if (base_ == nullptr || bases.served(kind, base_, steps.size() * kWell <= bytes.size())) {
      if (base_ != nullptr) base_->drop();
      base_ = ValueBase::make(bytes);
      base_->hold();
      is_base_ = true;
      bases.add(kind, base_);
      steps.clear();
      put_number(steps, 0);
      put_number(steps, 0);
      put_number(steps, bytes.size());
    }
    kept = steps;
  }
  kept_ = static_cast<std::uint32_t>(kept.size());
  // In a block of its own size. Among what each caller's thread allocates for a moment the caller's
  // own bytes would leave holes of no use.
  block_ = static_cast<char*>(::operator new(std::max<std::size_t>(1, key.size() + kept.size())));
  std::memcpy(block_, key.data(), key.size());
  if (!kept.empty()) std::memcpy(block_ + key.size(), kept.data(), kept.size());
}

ValueBytes::~ValueBytes() {
  if (base_ != nullptr) base_->drop();
  ::operator delete(block_);
}

/// `piece` says whether it wants more.
template <typename Piece>
void ValueBytes::each_piece(Piece piece) const {
  const char* at = block_ + key_size_;
  const char* end = at + kept_;
  if (base_ == nullptr) {
    piece(std::string_view(at, kept_));
    return;
  }
  const std::string_view base = base_->bytes();
  std::size_t base_at = 0;
  while (at < end) {
    const std::size_t own = get_number(at);
    if (own > 0 && !piece(std::string_view(at, own))) return;
    at += own;
    base_at += get_number(at);
    const std::size_t copied = get_number(at);
    if (copied > 0 && !piece(base.substr(base_at, copied))) return;
    base_at += copied;
  }
}

void ValueBytes::append_to(std::string& out) const {
  each_piece([&](std::string_view piece) {
    out.append(piece);
    return true;
  });
}

std::string ValueBytes::operator*() const {
  std::string out;
  out.reserve(size_);
  append_to(out);
  return out;
}

std::string ValueBytes::head(std::size_t count) const {
  std::string out;
  out.reserve(std::min<std::size_t>(count, size_));
  each_piece([&](std::string_view piece) {
    out.append(piece.substr(0, count - out.size()));
    return out.size() < count;
  });
  return out;
}

}  // namespace dibs::store
