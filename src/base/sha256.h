#pragma once
// SHA-256, for names that others compute as well: of attachments, of a volume's folder. Not for
// secrets, which net/ has OpenSSL for.

#include <string>
#include <string_view>

namespace dibs {

/// 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace dibs
