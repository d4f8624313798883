#include "drivers/gpu/go_random.h"

namespace dibs::drivers {
namespace {

constexpr std::size_t kLength = 607;
constexpr std::size_t kShort = kLength - 273;  // x[n] = x[n-607] + x[n-273]: z^607 = z^334 + 1
constexpr std::size_t kFirst = 333;            // where the first step writes
constexpr std::uint64_t kSteps = 7'800'000'000'000;
constexpr std::int64_t kModulus = (1LL << 31) - 1;

using Words = std::array<std::uint64_t, kLength>;

std::int64_t lehmer(std::int64_t x) { return 48271 * x % kModulus; }

/// Three numbers of the small generator make a word.
Words seeded(std::int64_t x, unsigned high, unsigned middle) {
  Words words{};
  for (int i = 0; i < 20; ++i) x = lehmer(x);
  for (auto& word : words) {
    const std::int64_t a = lehmer(x);
    const std::int64_t b = lehmer(a);
    x = lehmer(b);
    word = static_cast<std::uint64_t>(a) << high ^ static_cast<std::uint64_t>(b) << middle ^
           static_cast<std::uint64_t>(x);
  }
  return words;
}

Words squared(const Words& a) {
  std::vector<std::uint64_t> product(2 * kLength - 1, 0);
  for (std::size_t i = 0; i < kLength; ++i) {
    if (a[i] == 0) continue;
    std::uint64_t* out = product.data() + i;
    for (std::size_t j = 0; j < kLength; ++j) out[j] += a[i] * a[j];
  }
  for (std::size_t k = product.size() - 1; k >= kLength; --k) {
    product[k - kLength] += product[k];
    product[k - kLength + kShort] += product[k];
  }
  Words result{};
  for (std::size_t i = 0; i < kLength; ++i) result[i] = product[i];
  return result;
}

void multiply_by_z(Words& a) {
  const std::uint64_t top = a[kLength - 1];
  for (std::size_t i = kLength - 1; i > 0; --i) a[i] = a[i - 1];
  a[0] = top;
  a[kShort] += top;
}

Words compute_table() {
  const Words start = seeded(1, 20, 10);
  // The sequence before the first step, oldest first.
  Words before{};
  for (std::size_t m = 0; m < kLength; ++m) before[m] = start[(kFirst + kLength - m) % kLength];
  Words power{};
  power[0] = 1;
  for (int bit = 63; bit >= 0; --bit) {
    power = squared(power);
    if ((kSteps >> bit & 1) != 0) multiply_by_z(power);
  }
  Words table{};
  std::size_t place = (kFirst + kLength - (kSteps - kLength) % kLength) % kLength;
  for (std::size_t j = 0; j < kLength; ++j) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < kLength; ++k) value += power[k] * before[k];
    table[place] = value;
    place = (place + kLength - 1) % kLength;
    multiply_by_z(power);
  }
  return table;
}

const Words& table() {
  static const Words words = compute_table();
  return words;
}

/// The code points of a text; broken bytes count as U+FFFD, as in Go.
std::vector<std::int64_t> code_points(std::string_view text) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80    ? 0
                             : lead >= 0xf0 ? 3
                             : lead >= 0xe0 ? 2
                             : lead >= 0xc2 ? 1
                                            : 4;
    std::int64_t point = more == 0 ? lead : lead & (0x3f >> more);
    bool good = more < 4 && i + more < text.size();
    for (std::size_t k = 1; good && k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      good = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3f);
    }
    out.push_back(good ? point : 0xfffd);
    i += good ? more + 1 : 1;
  }
  return out;
}

}  // namespace

GoRandom::GoRandom(std::int64_t seed) {
  std::int64_t x = seed % kModulus;
  if (x < 0) x += kModulus;
  if (x == 0) x = 89482311;
  state_ = seeded(x, 40, 20);
  for (std::size_t i = 0; i < kLength; ++i) state_[i] ^= table()[i];
}

std::uint64_t GoRandom::next63() {
  tap_ = (tap_ + kLength - 1) % kLength;
  feed_ = (feed_ + kLength - 1) % kLength;
  state_[feed_] += state_[tap_];
  return state_[feed_] & ~(1ULL << 63);
}

void GoRandom::read(std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (left_bytes_ == 0) {
      left_ = next63();
      left_bytes_ = 7;
    }
    bytes[i] = static_cast<std::uint8_t>(left_);
    left_ >>= 8;
    --left_bytes_;
  }
}

std::vector<std::string> device_uuids(std::string_view prefix, std::string_view node,
                                      std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::uint64_t seed = 0;
  for (const std::int64_t point : code_points(node)) {
    seed = 31 * seed + static_cast<std::uint64_t>(point);
  }
  GoRandom random(static_cast<std::int64_t>(seed));
  std::vector<std::string> out;
  for (std::size_t n = 0; n < count; ++n) {
    std::uint8_t bytes[16];
    random.read(bytes, sizeof bytes);
    std::string text(prefix);
    for (std::size_t i = 0; i < sizeof bytes; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
      text.push_back(kDigits[bytes[i] >> 4]);
      text.push_back(kDigits[bytes[i] & 15]);
    }
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace dibs::drivers
