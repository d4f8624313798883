#pragma once
// Messages of DNS (RFC 1035, 3597, 6891): bytes to values and back.
//
// The bytes may be anybody's. A compressed name only points backwards, so that reading one ends; no
// more is kept than a message of that size can hold. Names inside of records' data are read out of
// their compression for the types that may have it (RFC 3597, 4), so a record's data means the same
// in any other message. The record OPT is no record here, but `edns`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/name.h"

namespace dibs::dns {

namespace type {
inline constexpr std::uint16_t a = 1;
inline constexpr std::uint16_t ns = 2;
inline constexpr std::uint16_t cname = 5;
inline constexpr std::uint16_t soa = 6;
inline constexpr std::uint16_t ptr = 12;
inline constexpr std::uint16_t mx = 15;
inline constexpr std::uint16_t txt = 16;
inline constexpr std::uint16_t aaaa = 28;
inline constexpr std::uint16_t srv = 33;
inline constexpr std::uint16_t opt = 41;
inline constexpr std::uint16_t ixfr = 251;
inline constexpr std::uint16_t axfr = 252;
inline constexpr std::uint16_t any = 255;
}  // namespace type

inline constexpr std::uint16_t kInternet = 1;  // the class

enum class Rcode : std::uint16_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  name_error = 3,  // NXDOMAIN
  not_implemented = 4,
  refused = 5,
  bad_version = 16,
};

struct Question {
  Name name = {};
  std::uint16_t type = dns::type::a;
  std::uint16_t klass = kInternet;
  friend bool operator==(const Question&, const Question&) = default;
};

struct Record {
  Name name = {};
  std::uint16_t type = 0;
  std::uint16_t klass = kInternet;
  std::uint32_t ttl = 0;
  std::string data = {};
  friend bool operator==(const Record&, const Record&) = default;
};

struct Edns {
  std::uint16_t size = 0;  // of a datagram that the sender takes
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  friend bool operator==(const Edns&, const Edns&) = default;
};

struct Message {
  std::uint16_t id = 0;
  bool response = false;
  std::uint8_t opcode = 0;
  bool authoritative = false;
  bool truncated = false;
  bool recursion_desired = false;
  bool recursion_available = false;
  bool authentic_data = false;
  bool checking_disabled = false;
  Rcode rcode = Rcode::no_error;
  std::vector<Question> questions = {};
  std::vector<Record> answers = {};
  std::vector<Record> authority = {};
  std::vector<Record> additional = {};
  std::optional<Edns> edns = {};
  friend bool operator==(const Message&, const Message&) = default;
};

inline constexpr std::size_t kHeader = 12;
inline constexpr std::size_t kLongestMessage = 65535;
/// What everybody takes in a datagram who says nothing else, and what no network has to cut.
inline constexpr std::size_t kPlainDatagram = 512;
inline constexpr std::uint16_t kDatagram = 1232;

/// Errors: invalid, saying what is wrong.
Result<Message> parse(std::string_view bytes);
/// Not longer than `limit`: what has no room is left out, and the message says so (`truncated`)
/// unless it is only additional.
std::string write(const Message& message, std::size_t limit = kLongestMessage);

/// Data of records.
std::string srv_data(std::uint16_t priority, std::uint16_t weight, std::uint16_t port,
                     const Name& target);
std::string soa_data(const Name& server, const Name& mailbox, std::uint32_t serial,
                     std::uint32_t negative_ttl);
std::string txt_data(std::string_view text);
/// The name that the data of a CNAME, NS or PTR is.
std::optional<Name> name_in(std::string_view data);
/// For how long its absence may be remembered, by the SOA of a negative answer; null without one.
std::optional<std::uint32_t> negative_ttl(const Message& message);

}  // namespace dibs::dns
