#include "dns/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::dns {
namespace {

constexpr std::size_t kV4 = 4;
constexpr std::size_t kV6 = 16;

/// Without signs and leading zeros.
std::optional<unsigned> number(std::string_view text, unsigned most) {
  unsigned out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out > most) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return out;
}

std::optional<unsigned> nibble(std::string_view text) {
  if (text.size() != 1) return std::nullopt;
  const char c = text.front();
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> parse_address(std::string_view text) {
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) return std::nullopt;
  std::string out(kV6, '\0');
  if (::inet_pton(AF_INET, copy.c_str(), out.data()) == 1) return out.substr(0, kV4);
  if (::inet_pton(AF_INET6, copy.c_str(), out.data()) == 1) return out;
  return std::nullopt;
}

std::string address_text(std::string_view bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == kV4) ::inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  if (bytes.size() == kV6) ::inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::string address_label(std::string_view bytes) {
  std::string out = address_text(bytes);
  std::replace(out.begin(), out.end(), '.', '-');
  std::replace(out.begin(), out.end(), ':', '-');
  return out;
}

std::optional<std::string> label_address(std::string_view label) {
  std::string text(label);
  if (text.find_first_of(".:") != std::string::npos) return std::nullopt;
  std::replace(text.begin(), text.end(), '-', '.');
  if (auto v4 = parse_address(text)) return v4;
  std::replace(text.begin(), text.end(), '.', ':');
  return parse_address(text);
}

std::optional<Reverse> reverse_address(const Name& name) {
  auto labels = name.labels();
  if (labels.size() < 2 || labels.back() != "arpa") return std::nullopt;
  labels.pop_back();
  Reverse out;
  out.v6 = labels.back() == "ip6";
  if (!out.v6 && labels.back() != "in-addr") return std::nullopt;
  labels.pop_back();
  std::reverse(labels.begin(), labels.end());
  if (!out.v6) {
    if (labels.size() > kV4) return std::nullopt;
    for (const auto label : labels) {
      const auto byte = number(label, 255);
      if (!byte) return std::nullopt;
      out.bytes.push_back(static_cast<char>(*byte));
    }
    out.whole = out.bytes.size() == kV4;
    return out;
  }
  if (labels.size() > 2 * kV6) return std::nullopt;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto half = nibble(labels[i]);
    if (!half) return std::nullopt;
    if (i % 2 == 0) {
      out.bytes.push_back(static_cast<char>(*half << 4));
    } else {
      out.bytes.back() = static_cast<char>(out.bytes.back() | static_cast<char>(*half));
    }
  }
  if (labels.size() % 2 == 1) out.bytes.pop_back();
  out.whole = out.bytes.size() == kV6;
  return out;
}

Result<Range> Range::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto base = parse_address(text.substr(0, slash));
  const auto bits = slash == std::string_view::npos
                        ? std::nullopt
                        : number(text.substr(slash + 1), base ? unsigned(base->size() * 8) : 0);
  if (!base || !bits)
    return Error::bad_request(cat(quoted(text), ": must be a range ADDRESS/BITS"));
  Range out;
  out.base_ = *base;
  out.bits_ = *bits;
  return out;
}

bool Range::contains(std::string_view address) const {
  if (address.size() != base_.size()) return false;
  for (unsigned bit = 0; bit < bits_; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    const auto differ = static_cast<unsigned char>(address[bit / 8] ^ base_[bit / 8]);
    if ((differ & mask) != 0) return false;
  }
  return true;
}

}  // namespace dibs::dns
