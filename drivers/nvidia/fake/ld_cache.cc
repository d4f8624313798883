#include <algorithm>
#include <cstring>

#include "drivers/nvidia/fake/root.h"

namespace dibs::drivers::nvidia::fake {
namespace {

// The format that glibc has written since 2.2 and reads alone since 2.32: a head, entries in
// descending order of their names, the texts. Numbers are the machine's, places count from the
// head.
constexpr char kMagic[] = "glibc-ld.so.cache1.1";
/// A library of glibc (3) for x86-64 (0x0300).
constexpr std::int32_t kFlags = 0x0303;

struct Head {
  char magic[20];
  std::uint32_t libraries;
  std::uint32_t text_size;
  std::uint32_t unused[5];
};

struct Entry {
  std::int32_t flags;
  std::uint32_t name;
  std::uint32_t path;
  std::uint32_t os_version;
  std::uint64_t hardware;
};

static_assert(sizeof(Head) == 48 && sizeof(Entry) == 24);

template <typename T>
void put(std::string& out, const T& bytes) {
  out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

}  // namespace

std::string ld_cache(const std::vector<std::pair<std::string, std::string>>& libraries) {
  auto sorted = libraries;
  std::sort(sorted.rbegin(), sorted.rend());
  std::string texts;
  const std::size_t texts_at = sizeof(Head) + sorted.size() * sizeof(Entry);
  const auto place = [&](const std::string& text) {
    const std::size_t at = texts_at + texts.size();
    texts.append(text).push_back('\0');
    return static_cast<std::uint32_t>(at);
  };
  std::string entries;
  for (const auto& [name, path] : sorted) {
    const std::uint32_t name_at = place(name);
    put(entries, Entry{kFlags, name_at, place(path), 0, 0});
  }
  Head head = {};
  std::memcpy(head.magic, kMagic, sizeof head.magic);
  head.libraries = static_cast<std::uint32_t>(sorted.size());
  head.text_size = static_cast<std::uint32_t>(texts.size());
  std::string out;
  put(out, head);
  return out + entries + texts;
}

}  // namespace dibs::drivers::nvidia::fake
