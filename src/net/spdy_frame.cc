#include "net/spdy_frame.h"

#include <zlib.h>

#include <algorithm>

#include "base/strings.h"

namespace dibs::net {
namespace {

constexpr std::size_t kHead = 8;
// Of a control frame, and of a header block unpacked: Kubernetes sends a few short headers.
constexpr std::size_t kMaxControl = 64 * 1024;
constexpr std::size_t kMaxHeaders = 256 * 1024;
constexpr std::uint8_t kFin = 1;

void put32(std::string& out, std::uint32_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(n >> shift));
}

std::uint32_t get32(std::string_view bytes, std::size_t at) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(bytes[at + i]);
  return n;
}

/// The words both ends know beforehand (SPDY/3, section 2.6.10.1): names with their length before
/// them, then bare text.
const std::string& dictionary() {
  static const std::string text = [] {
    std::string out;
    for (std::string_view word : split(
             "options head post put delete trace accept accept-charset accept-encoding "
             "accept-language accept-ranges age allow authorization cache-control connection "
             "content-base content-encoding content-language content-length content-location "
             "content-md5 content-range content-type date etag expect expires from host if-match "
             "if-modified-since if-none-match if-range if-unmodified-since last-modified location "
             "max-forwards pragma proxy-authenticate proxy-authorization range referer "
             "retry-after server te trailer transfer-encoding upgrade user-agent vary via warning "
             "www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
             "keep-alive origin",
             ' ')) {
      put32(out, static_cast<std::uint32_t>(word.size()));
      out.append(word);
    }
    std::replace(out.begin(), out.end(), '_', ' ');
    out.append(
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
        "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
        "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, "
        "Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
        "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
        "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.");
    return out;
  }();
  return text;
}

const Bytef* raw(std::string_view bytes) { return reinterpret_cast<const Bytef*>(bytes.data()); }

Error broken(std::string_view why) { return Error::bad_request(cat("SPDY: ", why)); }

Result<SpdyHeaders> read_block(std::string_view block) {
  SpdyHeaders out;
  std::size_t at = 0;
  const auto number = [&](std::uint32_t& n) {
    if (block.size() - at < 4) return false;
    n = get32(block, at);
    at += 4;
    return true;
  };
  const auto text = [&](std::string& piece) {
    std::uint32_t size = 0;
    if (!number(size) || block.size() - at < size) return false;
    piece = block.substr(at, size);
    at += size;
    return true;
  };
  std::uint32_t count = 0;
  if (!number(count) || count > block.size() / 8) return broken("broken header block");
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string name;
    std::string value;
    if (!text(name) || !text(value)) return broken("broken header block");
    for (std::string_view one : split(value, '\0')) out.emplace_back(name, one);
  }
  return out;
}

std::string control(SpdyType type, std::uint8_t flags, std::string_view payload) {
  std::string out;
  out.reserve(kHead + payload.size());
  put32(out, 0x80030000U | static_cast<std::uint32_t>(type));
  put32(out, static_cast<std::uint32_t>(flags) << 24 | static_cast<std::uint32_t>(payload.size()));
  out.append(payload);
  return out;
}

}  // namespace

std::string_view spdy_header(const SpdyHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (equals_ignoring_case(key, name)) return value;
  }
  return {};
}

struct SpdyCodec::Impl {
  Impl() {
    inflateInit(&unpack);
    // A window of 2 KiB holds the whole dictionary and keeps a connection small.
    deflateInit2(&pack, 6, Z_DEFLATED, 11, 1, Z_DEFAULT_STRATEGY);
    deflateSetDictionary(&pack, raw(dictionary()), static_cast<uInt>(dictionary().size()));
  }
  ~Impl() {
    inflateEnd(&unpack);
    deflateEnd(&pack);
  }

  Result<std::string> unpacked(std::string_view block) {
    std::string out;
    char buffer[4096];
    unpack.next_in = const_cast<Bytef*>(raw(block));
    unpack.avail_in = static_cast<uInt>(block.size());
    while (true) {
      unpack.next_out = reinterpret_cast<Bytef*>(buffer);
      unpack.avail_out = sizeof buffer;
      int code = inflate(&unpack, Z_SYNC_FLUSH);
      if (code == Z_NEED_DICT) {
        code = inflateSetDictionary(&unpack, raw(dictionary()),
                                    static_cast<uInt>(dictionary().size()));
        if (code == Z_OK) continue;
      }
      const std::size_t got = sizeof buffer - unpack.avail_out;
      out.append(buffer, got);
      if (out.size() > kMaxHeaders) return broken("header block too large");
      if (code != Z_OK && code != Z_BUF_ERROR) return broken("broken header compression");
      if (unpack.avail_in == 0 && unpack.avail_out > 0) return out;
      if (code == Z_BUF_ERROR && got == 0) return broken("broken header compression");
    }
  }

  std::string packed(const SpdyHeaders& headers) {
    std::string block;
    put32(block, static_cast<std::uint32_t>(headers.size()));
    for (const auto& [name, value] : headers) {
      put32(block, static_cast<std::uint32_t>(name.size()));
      block.append(to_lower(name));
      put32(block, static_cast<std::uint32_t>(value.size()));
      block.append(value);
    }
    std::string out;
    char buffer[1024];
    pack.next_in = const_cast<Bytef*>(raw(block));
    pack.avail_in = static_cast<uInt>(block.size());
    do {
      pack.next_out = reinterpret_cast<Bytef*>(buffer);
      pack.avail_out = sizeof buffer;
      deflate(&pack, Z_SYNC_FLUSH);
      out.append(buffer, sizeof buffer - pack.avail_out);
    } while (pack.avail_out == 0);
    return out;
  }

  z_stream unpack = {};
  z_stream pack = {};
  std::string held;           // a head or control frame in the making
  std::size_t data_left = 0;  // of the data frame that is coming in
  std::uint32_t data_stream = 0;
  bool data_fin = false;
  bool failed = false;
};

SpdyCodec::SpdyCodec() : impl_(std::make_unique<Impl>()) {}
SpdyCodec::~SpdyCodec() = default;

Result<> SpdyCodec::feed(std::string_view bytes, std::vector<SpdyFrame>& frames) {
  Impl& in = *impl_;
  const auto fail = [&](Error error) {
    in.failed = true;
    return error;
  };
  if (in.failed) return broken("the connection has failed");
  while (!bytes.empty()) {
    if (in.data_left > 0) {
      SpdyFrame frame;
      frame.stream = in.data_stream;
      frame.data = bytes.substr(0, in.data_left);
      bytes.remove_prefix(frame.data.size());
      in.data_left -= frame.data.size();
      frame.fin = in.data_left == 0 && in.data_fin;
      frames.push_back(std::move(frame));
      continue;
    }
    const std::size_t head_part = std::min(bytes.size(), kHead - std::min(kHead, in.held.size()));
    in.held.append(bytes.substr(0, head_part));
    bytes.remove_prefix(head_part);
    if (in.held.size() < kHead) break;
    const std::uint32_t first = get32(in.held, 0);
    const std::uint32_t second = get32(in.held, 4);
    const std::size_t size = second & 0xffffff;
    if ((first & 0x80000000U) == 0) {
      in.held.clear();
      in.data_stream = first;
      in.data_left = size;
      in.data_fin = (second >> 24 & kFin) != 0;
      if (size > 0) continue;
      SpdyFrame frame;
      frame.stream = first;
      frame.fin = in.data_fin;
      frames.push_back(std::move(frame));
      continue;
    }
    if ((first >> 16 & 0x7fff) != 3) return fail(broken("unknown version"));
    if (size > kMaxControl) return fail(broken("frame too large"));
    const std::size_t part = std::min(bytes.size(), kHead + size - in.held.size());
    in.held.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (in.held.size() < kHead + size) break;
    if (auto taken = take_control(frames); !taken.ok()) return fail(std::move(taken).error());
    in.held.clear();
  }
  return success();
}

Result<> SpdyCodec::take_control(std::vector<SpdyFrame>& frames) {
  const std::string_view held = impl_->held;
  const std::string_view payload = held.substr(kHead);
  const std::uint32_t first = get32(held, 0);
  SpdyFrame frame;
  frame.type = static_cast<SpdyType>(first & 0xffff);
  frame.fin = (static_cast<std::uint8_t>(held[4]) & kFin) != 0;
  std::size_t fixed = 0;
  switch (frame.type) {
    case SpdyType::syn_stream:
      fixed = 10;
      break;
    case SpdyType::syn_reply:
    case SpdyType::headers:
    case SpdyType::ping:
      fixed = 4;
      break;
    case SpdyType::rst_stream:
    case SpdyType::goaway:
      fixed = 8;
      break;
    default:
      return success();  // settings, windows, and what may come: nothing to do
  }
  if (payload.size() < fixed) return broken("frame too short");
  frame.stream = get32(payload, 0);
  if (frame.type != SpdyType::ping) frame.stream &= 0x7fffffffU;
  if (fixed == 8) frame.status = get32(payload, 4);
  if (frame.type == SpdyType::syn_stream || frame.type == SpdyType::syn_reply ||
      frame.type == SpdyType::headers) {
    DIBS_TRY(const std::string block, impl_->unpacked(payload.substr(fixed)));
    DIBS_TRY(frame.headers, read_block(block));
  }
  frames.push_back(std::move(frame));
  return success();
}

std::string SpdyCodec::syn_stream(std::uint32_t stream, const SpdyHeaders& headers, bool fin) {
  std::string payload;
  put32(payload, stream);
  put32(payload, 0);
  payload.append(2, '\0');
  payload.append(impl_->packed(headers));
  return control(SpdyType::syn_stream, fin ? kFin : 0, payload);
}

std::string SpdyCodec::syn_reply(std::uint32_t stream, const SpdyHeaders& headers, bool fin) {
  std::string payload;
  put32(payload, stream);
  payload.append(impl_->packed(headers));
  return control(SpdyType::syn_reply, fin ? kFin : 0, payload);
}

std::string SpdyCodec::data(std::uint32_t stream, std::string_view bytes, bool fin) {
  constexpr std::size_t kPiece = 64 * 1024;
  std::string out;
  out.reserve(bytes.size() + kHead);
  do {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    put32(out, stream);
    const std::uint32_t flags = fin && bytes.empty() ? kFin : 0;
    put32(out, flags << 24 | static_cast<std::uint32_t>(piece.size()));
    out.append(piece);
  } while (!bytes.empty());
  return out;
}

std::string SpdyCodec::rst_stream(std::uint32_t stream, std::uint32_t status) {
  std::string payload;
  put32(payload, stream);
  put32(payload, status);
  return control(SpdyType::rst_stream, 0, payload);
}

std::string SpdyCodec::ping(std::uint32_t id) {
  std::string payload;
  put32(payload, id);
  return control(SpdyType::ping, 0, payload);
}

std::string SpdyCodec::goaway(std::uint32_t last_stream) {
  std::string payload;
  put32(payload, last_stream);
  put32(payload, 0);
  return control(SpdyType::goaway, 0, payload);
}

}  // namespace dibs::net
