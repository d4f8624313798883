#pragma once
// NaCl's secretbox, XSalsa20 with Poly1305, for values that others wrote with it. OpenSSL has the
// second and not the first.

#include <optional>
#include <string>
#include <string_view>

namespace dibs::server {

inline constexpr std::size_t kBoxKey = 32;
inline constexpr std::size_t kBoxNonce = 24;

/// A tag of 16 bytes and as many bytes as `message` has. Requires a key and a nonce of their sizes;
/// no nonce may be used twice with one key. Nothing: OpenSSL failed.
std::optional<std::string> seal_box(std::string_view message, std::string_view nonce,
                                    std::string_view key);
/// Nothing: it was changed, or is of another key or nonce.
std::optional<std::string> open_box(std::string_view box, std::string_view nonce,
                                    std::string_view key);

}  // namespace dibs::server
