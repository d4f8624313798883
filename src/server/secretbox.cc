#include "server/secretbox.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstdint>

#include "base/owned.h"

namespace dibs::server {
namespace {

constexpr std::size_t kTag = 16;
constexpr std::size_t kBlock = 64;
constexpr std::size_t kMacKey = 32;  // the beginning of the key stream

using State = std::array<std::uint32_t, 16>;

std::uint32_t word_at(std::string_view bytes, std::size_t index) {
  std::uint32_t out = 0;
  for (std::size_t i = 4; i-- > 0;) {
    out = out << 8 | static_cast<unsigned char>(bytes[index * 4 + i]);
  }
  return out;
}

void put_word(std::string& out, std::uint32_t word) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(word >> (8 * i)));
}

void quarter(State& x, int a, int b, int c, int d) {
  x[b] ^= std::rotl(x[a] + x[d], 7);
  x[c] ^= std::rotl(x[b] + x[a], 9);
  x[d] ^= std::rotl(x[c] + x[b], 13);
  x[a] ^= std::rotl(x[d] + x[c], 18);
}

void mix(State& x) {
  for (int i = 0; i < 10; ++i) {
    quarter(x, 0, 4, 8, 12);
    quarter(x, 5, 9, 13, 1);
    quarter(x, 10, 14, 2, 6);
    quarter(x, 15, 3, 7, 11);
    quarter(x, 0, 1, 2, 3);
    quarter(x, 5, 6, 7, 4);
    quarter(x, 10, 11, 8, 9);
    quarter(x, 15, 12, 13, 14);
  }
}

/// `input`: 16 bytes, the nonce or a nonce and a counter.
State start(std::string_view key, std::string_view input) {
  constexpr std::string_view kSigma = "expand 32-byte k";
  State x = {};
  for (std::size_t i = 0; i < 4; ++i) {
    x[i * 5] = word_at(kSigma, i);
    x[1 + i] = word_at(key, i);
    x[6 + i] = word_at(input, i);
    x[11 + i] = word_at(key, 4 + i);
  }
  return x;
}

/// The key of Salsa20 that the first 16 bytes of the long nonce make of ours.
std::string derived_key(std::string_view key, std::string_view nonce) {
  State x = start(key, nonce.substr(0, 16));
  mix(x);
  std::string out;
  for (const int i : {0, 5, 10, 15, 6, 7, 8, 9}) put_word(out, x[i]);
  return out;
}

std::string key_stream(std::string_view key, std::string_view nonce, std::size_t size) {
  const std::string inner = derived_key(key, nonce);
  std::string out;
  out.reserve(size + kBlock);
  for (std::uint64_t counter = 0; out.size() < size; ++counter) {
    std::string input(nonce.substr(16, 8));
    put_word(input, static_cast<std::uint32_t>(counter));
    put_word(input, static_cast<std::uint32_t>(counter >> 32));
    const State before = start(inner, input);
    State x = before;
    mix(x);
    for (std::size_t i = 0; i < x.size(); ++i) put_word(out, x[i] + before[i]);
  }
  return out;
}

std::string with_stream(std::string_view bytes, std::string_view stream) {
  std::string out(bytes);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<char>(out[i] ^ stream[kMacKey + i]);
  }
  return out;
}

std::optional<std::string> tag_of(std::string_view bytes, std::string_view key) {
  const Owned<EVP_MAC, EVP_MAC_free> mac(EVP_MAC_fetch(nullptr, "POLY1305", nullptr));
  if (!mac) return std::nullopt;
  const Owned<EVP_MAC_CTX, EVP_MAC_CTX_free> context(EVP_MAC_CTX_new(mac.get()));
  std::string tag(kTag, '\0');
  std::size_t size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!context ||
      EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()), kMacKey,
                   nullptr) != 1 ||
      EVP_MAC_update(context.get(), data, bytes.size()) != 1 ||
      EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(tag.data()), &size, kTag) !=
          1 ||
      size != kTag) {
    return std::nullopt;
  }
  return tag;
}

}  // namespace

std::optional<std::string> seal_box(std::string_view message, std::string_view nonce,
                                    std::string_view key) {
  const std::string stream = key_stream(key, nonce, kMacKey + message.size());
  const std::string sealed = with_stream(message, stream);
  auto tag = tag_of(sealed, stream);
  if (!tag) return std::nullopt;
  return *tag + sealed;
}

std::optional<std::string> open_box(std::string_view box, std::string_view nonce,
                                    std::string_view key) {
  if (box.size() < kTag) return std::nullopt;
  const std::string_view sealed = box.substr(kTag);
  const std::string stream = key_stream(key, nonce, kMacKey + sealed.size());
  const auto tag = tag_of(sealed, stream);
  if (!tag || CRYPTO_memcmp(tag->data(), box.data(), kTag) != 0) return std::nullopt;
  return with_stream(sealed, stream);
}

}  // namespace dibs::server
