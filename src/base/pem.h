#pragma once
// PEM: blocks of base64 between lines that name their type.
//
// Readers of PEM do not agree on damaged text: where one stops at the first letter that is not
// base64, another one skips the whole block and takes the next. What is judged by one reader must
// not be used by way of another, so this one, which reads as Go's encoding/pem does, is for all
// that is checked in one place and acted on in another.

#include <optional>
#include <string>
#include <string_view>

namespace dibs {

struct PemBlock {
  std::string type;
  bool has_headers = false;
  std::string bytes;
};

/// The next block of a text, which moves on behind it. What is no block is skipped; nothing when
/// there is none.
std::optional<PemBlock> next_pem_block(std::string_view& text);

}  // namespace dibs
