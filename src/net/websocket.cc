#include "net/websocket.h"

#include <openssl/sha.h>

#include <algorithm>

#include "base/strings.h"

namespace dibs::net {
namespace {

constexpr std::size_t kMaxControl = 125;

bool is_control(WsOp op) { return static_cast<std::uint8_t>(op) >= 8; }

bool is_known(std::uint8_t op) { return op <= 2 || (op >= 8 && op <= 10); }

// Codes a peer may put on the wire.
bool is_sendable(std::uint16_t code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

void append_head(std::string& out, WsOp op, std::size_t size, bool masked) {
  out.push_back(static_cast<char>(0x80 | static_cast<std::uint8_t>(op)));
  const auto mask = static_cast<unsigned char>(masked ? 0x80 : 0);
  if (size <= kMaxControl) {
    out.push_back(static_cast<char>(mask | size));
  } else if (size <= 0xffff) {
    out.push_back(static_cast<char>(mask | 126));
    out.push_back(static_cast<char>(size >> 8));
    out.push_back(static_cast<char>(size));
  } else {
    out.push_back(static_cast<char>(mask | 127));
    for (int shift = 56; shift >= 0; shift -= 8) {
      out.push_back(static_cast<char>(static_cast<std::uint64_t>(size) >> shift));
    }
  }
}

}  // namespace

std::uint16_t WsReader::feed(std::string_view bytes, std::vector<WsEvent>& events) {
  held_.append(bytes);
  std::size_t at = 0;
  std::uint16_t code = 0;
  while (code == 0) {
    const std::string_view rest = std::string_view(held_).substr(at);
    if (rest.size() < 2) break;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
    const bool final = (byte(0) & 0x80) != 0;
    const auto op = static_cast<std::uint8_t>(byte(0) & 0x0f);
    const bool masked = (byte(1) & 0x80) != 0;
    if ((byte(0) & 0x70) != 0 || !is_known(op) || masked != from_client_) {
      code = 1002;
      break;
    }
    std::uint64_t size = byte(1) & 0x7f;
    std::size_t head = 2;
    if (size >= 126) {
      const std::size_t width = size == 126 ? 2 : 8;
      if (rest.size() < head + width) break;
      size = 0;
      for (std::size_t i = 0; i < width; ++i) size = size << 8 | byte(head + i);
      head += width;
    }
    if (is_control(WsOp{op}) && (size > kMaxControl || !final)) {
      code = 1002;
      break;
    }
    if (!is_control(WsOp{op}) && (size > max_message_ || message_.size() + size > max_message_)) {
      code = 1009;
      break;
    }
    const std::size_t mask_at = head;
    if (masked) head += 4;
    if (rest.size() < head + size) break;
    std::string payload(rest.substr(head, size));
    if (masked) {
      for (std::size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<char>(payload[i] ^ rest[mask_at + i % 4]);
      }
    }
    at += head + size;
    code = take_frame(final, WsOp{op}, std::move(payload), events);
  }
  held_.erase(0, at);
  if (held_.empty()) held_ = std::string();
  return code;
}

std::uint16_t WsReader::take_frame(bool final, WsOp op, std::string payload,
                                   std::vector<WsEvent>& events) {
  switch (op) {
    case WsOp::ping:
      events.push_back({WsEvent::Kind::ping, std::move(payload), false, 0});
      return 0;
    case WsOp::pong:
      events.push_back({WsEvent::Kind::pong, std::move(payload), false, 0});
      return 0;
    case WsOp::close: {
      if (payload.size() == 1) return 1002;
      std::uint16_t code = 1005;
      if (payload.size() >= 2) {
        code = static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 |
                                          static_cast<unsigned char>(payload[1]));
        payload.erase(0, 2);
        if (!is_sendable(code)) return 1002;
        if (!is_valid_utf8(payload)) return 1007;
      }
      events.push_back({WsEvent::Kind::close, std::move(payload), false, code});
      return 0;
    }
    case WsOp::text:
    case WsOp::binary:
      if (in_message_) return 1002;
      in_message_ = true;
      binary_ = op == WsOp::binary;
      message_ = std::move(payload);
      break;
    case WsOp::more:
      if (!in_message_) return 1002;
      message_.append(payload);
      break;
  }
  if (!final) return 0;
  if (!binary_ && !is_valid_utf8(message_)) return 1007;
  in_message_ = false;
  events.push_back({WsEvent::Kind::message, std::move(message_), binary_, 0});
  message_.clear();
  return 0;
}

std::string ws_frame(WsOp op, std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 10);
  append_head(out, op, payload.size(), false);
  out.append(payload);
  return out;
}

std::string ws_masked_frame(WsOp op, std::string_view payload, std::uint32_t key) {
  std::string out;
  out.reserve(payload.size() + 14);
  append_head(out, op, payload.size(), true);
  char mask[4];
  for (int i = 0; i < 4; ++i) mask[i] = static_cast<char>(key >> (24 - 8 * i));
  out.append(mask, sizeof mask);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    out.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  }
  return out;
}

std::string ws_close_payload(std::uint16_t code, std::string_view reason) {
  std::string out;
  out.push_back(static_cast<char>(code >> 8));
  out.push_back(static_cast<char>(code));
  out.append(reason.substr(0, kMaxControl - 2));
  return out;
}

std::string ws_accept(std::string_view key) {
  const std::string text = cat(key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64_encode({reinterpret_cast<char*>(digest), sizeof digest});
}

}  // namespace dibs::net
