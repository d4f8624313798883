#include "net/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/strings.h"

namespace dibs::net {
namespace {

// Window of 15 bits; 16 more asks zlib for a gzip wrapper.
constexpr int kGzipWindow = 15 + 16;
constexpr int kLevel = 4;

Bytef* in(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = in(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Gzip::Impl {
  z_stream stream{};
};

Gzip::Gzip() : impl_(std::make_unique<Impl>()) {
  deflateInit2(&impl_->stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
}

Gzip::~Gzip() { deflateEnd(&impl_->stream); }

std::string Gzip::add(std::string_view bytes, bool last) {
  z_stream& stream = impl_->stream;
  stream.next_in = in(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  char buffer[64 * 1024];
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, sizeof buffer - stream.avail_out);
  } while (stream.avail_out == 0);
  return out;
}

Result<std::string> gunzip(std::string_view bytes, std::size_t max_size) {
  z_stream stream{};
  inflateInit2(&stream, kGzipWindow);
  stream.next_in = in(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t had = out.size();
    if (had > max_size) break;
    out.resize(std::min(std::max<std::size_t>(had * 2, 4096), max_size + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (state == Z_BUF_ERROR) break;
  }
  inflateEnd(&stream);
  if (out.size() > max_size) {
    return Error::too_large(cat("gzip: more than ", max_size, " bytes when unpacked"));
  }
  if (state != Z_STREAM_END) return Error::bad_request("gzip: invalid data");
  return out;
}

bool accepts_gzip(std::string_view accept_encoding) {
  for (const auto item : split(accept_encoding, ',')) {
    const auto parts = split(item, ';');
    const auto name = trim(parts[0]);
    if (!equals_ignoring_case(name, "gzip") && name != "*") continue;
    bool forbidden = false;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto parameter = trim(parts[i]);
      forbidden = parameter.starts_with("q=0") &&
                  parameter.substr(3).find_first_not_of(".0") == std::string_view::npos;
    }
    if (!forbidden) return true;
  }
  return false;
}

}  // namespace dibs::net
