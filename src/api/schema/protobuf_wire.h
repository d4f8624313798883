#pragma once
// The protobuf wire format: tags, varints, lengths. Of this library alone.

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::api::wire {

enum class Type : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2,
  group = 3,
  group_end = 4,
  fixed32 = 5
};

struct Item {
  std::uint32_t number = 0;
  Type type = Type::varint;
  std::uint64_t integer = 0;  // varint, fixed64, fixed32
  std::string_view bytes;
};

/// Takes one varint off the front. False at the end of the bytes or after ten bytes.
inline bool take_varint(std::string_view& in, std::uint64_t& out) {
  out = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (in.empty()) return false;
    auto byte = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    if (shift < 64) out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

inline bool take_fixed(std::string_view& in, std::size_t size, std::uint64_t& out) {
  if (in.size() < size) return false;
  out = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(in[i])) << (8 * i);
  }
  in.remove_prefix(size);
  return true;
}

/// Takes the next field off the front. False when the bytes are broken; groups count as broken.
inline bool take(std::string_view& in, Item& item) {
  std::uint64_t tag = 0;
  if (!take_varint(in, tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff) return false;
  item.number = static_cast<std::uint32_t>(tag >> 3);
  item.type = static_cast<Type>(tag & 7);
  switch (item.type) {
    case Type::varint:
      return take_varint(in, item.integer);
    case Type::fixed64:
      return take_fixed(in, 8, item.integer);
    case Type::fixed32:
      return take_fixed(in, 4, item.integer);
    case Type::bytes: {
      std::uint64_t length = 0;
      if (!take_varint(in, length) || length > in.size()) return false;
      item.bytes = in.substr(0, length);
      in.remove_prefix(length);
      return true;
    }
    default:
      return false;
  }
}

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline void put_tag(std::string& out, std::uint32_t number, Type type) {
  put_varint(out, (static_cast<std::uint64_t>(number) << 3) | static_cast<std::uint64_t>(type));
}

inline void put_integer(std::string& out, std::uint32_t number, std::int64_t value) {
  put_tag(out, number, Type::varint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

inline void put_bytes(std::string& out, std::uint32_t number, std::string_view bytes) {
  put_tag(out, number, Type::bytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

inline void put_fixed64(std::string& out, std::uint32_t number, std::uint64_t value) {
  put_tag(out, number, Type::fixed64);
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace dibs::api::wire
