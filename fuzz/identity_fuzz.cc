// Any bytes as what says who somebody is: certificates, requests for them, keys of pods, tokens and
// keys of issuers. The first byte chooses. What is signed says what was asked for, and signs
// nothing itself.
#include <chrono>
#include <string>

#include "api/kinds/access/certificate_material.h"
#include "base/pem.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "net/jwt.h"
#include "net/key_pair.h"
#include "net/x509.h"

namespace dibs::fuzz {
namespace {

const net::Validity kYear = {Time::from_seconds(1'700'000'000), Time::from_seconds(1'731'000'000)};

void sign(std::string_view pem) {
  static const net::Credential authority = net::make_ca("fuzz", kYear).value();
  const auto asked = net::parse_signing_request(pem);
  const auto made = net::sign_request(authority, pem, {"client auth", "cert sign"}, kYear);
  require(asked.ok() || !made.ok(), "what cannot be read is not signed");
  if (!made.ok()) return;
  const auto info = net::parse_certificate(*made);
  require(info.ok() && !info->is_ca, "no authority is made");
  require(info->common_name == asked->common_name, "it is who was asked for");
  require(info->user_ids.empty(), "and no part that nobody has looked at");
  std::size_t named = 0;
  for (const std::string& one : asked->organizations) named += one.empty() ? 0 : 1;
  require(info->organizations.size() == named, "in the groups that were asked for");
}

void read_blocks(std::string_view text) {
  const std::size_t size = text.size();
  while (const auto block = next_pem_block(text)) {
    require(block->bytes.size() <= size, "a block is not more than its text");
    (void)api::read_issued_certificate(block->bytes);
  }
}

void read_tokens(std::string_view text) {
  const auto line = text.find('\n');
  const auto keys = json::parse(text.substr(0, line));
  const auto token = line == std::string_view::npos ? text : text.substr(line + 1);
  (void)net::unverified_claims(token);
  if (!keys.ok()) return;
  const auto set = net::JwkSet::parse(*keys);
  if (set.ok()) {
    require(!set->verify(token, net::jwk_algorithms()).ok(), "nobody has signed this");
  }
}

}  // namespace

int fuzz_identity(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      sign(text);
      break;
    case 1:
      read_blocks(text);
      (void)net::clean_certificate_chain(text);
      (void)net::split_certificates(text);
      break;
    case 2:
      (void)api::read_stub_request(text);
      (void)api::read_public_key(text);
      (void)api::read_issued_certificate(text);
      break;
    default:
      read_tokens(text);
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_identity)
