#include "dns/message.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace dibs::dns {
namespace {

constexpr std::size_t kFurthest = 0x3fff;  // that a compressed name can point to
constexpr std::size_t kOptSize = 11;
constexpr std::uint32_t kDnssecOk = 0x8000;

/// Where names stand in the data of a type: after so many bytes and texts, so many of them; then
/// may come anything. Types not listed have none.
struct Layout {
  std::uint16_t type;
  std::uint8_t bytes = 0;
  std::uint8_t texts = 0;
  std::uint8_t names = 1;
  bool compress = false;  // on writing, too: RFC 1035's own types
};
constexpr Layout kLayouts[] = {
    {type::ns, 0, 0, 1, true},
    {3, 0, 0, 1, true},
    {4, 0, 0, 1, true},
    {type::cname, 0, 0, 1, true},
    {type::soa, 0, 0, 2, true},
    {7, 0, 0, 1, true},
    {8, 0, 0, 1, true},
    {9, 0, 0, 1, true},
    {type::ptr, 0, 0, 1, true},
    {14, 0, 0, 2, true},
    {type::mx, 2, 0, 1, true},
    {17, 0, 0, 2},  // RP
    {18, 2},
    {21, 2},  // AFSDB, RT
    {24, 18},
    {26, 2, 0, 2},  // SIG, PX
    {30},
    {type::srv, 6},  // NXT
    {35, 4, 3},
    {36, 2},
    {39},  // NAPTR, KX, DNAME
};

const Layout* layout_of(std::uint16_t type) {
  const auto* found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                   [&](const Layout& one) { return one.type == type; });
  return found == std::end(kLayouts) ? nullptr : found;
}

Error broken(std::string_view what) { return Error::invalid(cat("DNS message: ", what)); }

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  bool has(std::size_t count) const { return bytes_.size() - at_ >= count; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(bytes_[at_++]); }
  std::uint16_t two() {
    const unsigned high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  std::uint32_t four() {
    const std::uint32_t high = two();
    return high << 16 | two();
  }
  std::string_view take(std::size_t count) {
    const auto out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }

  Result<Name> name() {
    std::vector<std::string_view> labels;
    std::size_t size = 1;
    std::size_t from = at_;  // of the piece that is read
    std::size_t place = at_;
    bool jumped = false;
    while (true) {
      if (place >= bytes_.size()) return broken("a name goes on behind the end");
      const auto length = static_cast<std::uint8_t>(bytes_[place]);
      if (length >= 0xc0) {
        if (place + 1 >= bytes_.size()) return broken("a name goes on behind the end");
        const std::size_t target =
            (length & 0x3fU) << 8 | static_cast<std::uint8_t>(bytes_[place + 1]);
        // Each piece begins before the one that points to it: there is an end.
        if (target >= from) return broken("a name points ahead");
        if (!jumped) at_ = place + 2;
        jumped = true;
        from = place = target;
        continue;
      }
      if (length > Name::kLongestLabel) return broken("unknown kind of label");
      ++place;
      if (length == 0) break;
      if (bytes_.size() - place < length) return broken("a label goes on behind the end");
      size += 1 + length;
      if (size > Name::kLongest) return broken("a name is too long");
      labels.push_back(bytes_.substr(place, length));
      place += length;
    }
    if (!jumped) at_ = place;
    return *Name::from_labels(labels);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// The data with its names written out.
Result<std::string> read_data(Reader& reader, std::uint16_t type, std::size_t size) {
  const Layout* layout = layout_of(type);
  if (layout == nullptr) return std::string(reader.take(size));
  const std::size_t end = reader.at() + size;
  const auto left = [&] { return end - reader.at(); };
  if (left() < layout->bytes) return broken("data is too short");
  std::string out(reader.take(layout->bytes));
  for (int i = 0; i < layout->texts; ++i) {
    if (left() < 1) return broken("data is too short");
    const std::uint8_t length = reader.byte();
    if (left() < length) return broken("data is too short");
    append(out, static_cast<char>(length), reader.take(length));
  }
  for (int i = 0; i < layout->names; ++i) {
    DIBS_TRY(const Name name, reader.name());
    if (reader.at() > end) return broken("data is too short");
    out += name.wire();
  }
  out += reader.take(left());
  if (out.size() > kLongestMessage) return broken("data is too long");
  return out;
}

Result<> read_records(Reader& reader, unsigned count, std::vector<Record>& out, Message& message) {
  for (unsigned i = 0; i < count; ++i) {
    Record record;
    DIBS_TRY(record.name, reader.name());
    if (!reader.has(10)) return broken("a record goes on behind the end");
    record.type = reader.two();
    record.klass = reader.two();
    record.ttl = reader.four();
    const std::size_t size = reader.two();
    if (!reader.has(size)) return broken("data goes on behind the end");
    if (record.type != type::opt) {
      DIBS_TRY(record.data, read_data(reader, record.type, size));
      out.push_back(std::move(record));
      continue;
    }
    if (&out != &message.additional || message.edns || !record.name.is_root()) {
      return broken("OPT where it must not be");
    }
    message.edns = Edns{record.klass, static_cast<std::uint8_t>(record.ttl >> 16),
                        (record.ttl & kDnssecOk) != 0};
    message.rcode =
        static_cast<Rcode>(static_cast<unsigned>(message.rcode) | record.ttl >> 24 << 4);
    reader.take(size);
  }
  return success();
}

void put_two(std::string& out, unsigned number) {
  out.push_back(static_cast<char>(number >> 8 & 0xff));
  out.push_back(static_cast<char>(number & 0xff));
}

void put_four(std::string& out, std::uint32_t number) {
  put_two(out, number >> 16);
  put_two(out, number & 0xffff);
}

class Writer {
 public:
  std::string out;

  void name(std::string_view wire) {
    while (wire.front() != '\0') {
      if (const auto known = places_.find(std::string(wire)); known != places_.end()) {
        put_two(out, static_cast<unsigned>(0xc000 | known->second));
        return;
      }
      if (out.size() <= kFurthest) places_.emplace(wire, out.size());
      const std::size_t piece = 1 + static_cast<std::uint8_t>(wire.front());
      out += wire.substr(0, piece);
      wire.remove_prefix(piece);
    }
    out.push_back('\0');
  }

  /// False, and nothing is written, when it does not fit into `limit`.
  bool record(const Record& record, std::size_t limit) {
    const std::size_t before = out.size();
    name(record.name.wire());
    put_two(out, record.type);
    put_two(out, record.klass);
    put_four(out, record.ttl);
    put_two(out, 0);
    const std::size_t begin = out.size();
    data(record);
    const std::size_t size = out.size() - begin;
    if (out.size() > limit || size > 0xffff) {
      out.resize(before);
      std::erase_if(places_, [&](const auto& place) { return place.second >= before; });
      return false;
    }
    out[begin - 2] = static_cast<char>(size >> 8);
    out[begin - 1] = static_cast<char>(size & 0xff);
    return true;
  }

 private:
  void data(const Record& record) {
    const Layout* layout = layout_of(record.type);
    std::string_view rest = record.data;
    if (layout != nullptr && layout->compress && rest.size() >= layout->bytes) {
      out += rest.substr(0, layout->bytes);
      rest.remove_prefix(layout->bytes);
      for (int i = 0; i < layout->names; ++i) {
        const auto one = name_in(rest);
        if (!one) break;
        name(one->wire());
        rest.remove_prefix(one->wire().size());
      }
    }
    out += rest;
  }

  std::map<std::string, std::size_t> places_;
};

bool write_section(Writer& writer, const std::vector<Record>& records, std::size_t limit,
                   unsigned& count) {
  for (const auto& record : records) {
    if (!writer.record(record, limit)) return false;
    ++count;
  }
  return true;
}

void write_edns(std::string& out, const Message& message) {
  out.push_back('\0');
  put_two(out, type::opt);
  put_two(out, message.edns->size);
  const auto extended = static_cast<std::uint32_t>(message.rcode) >> 4;
  put_four(out, extended << 24 | std::uint32_t{message.edns->version} << 16 |
                    (message.edns->dnssec_ok ? kDnssecOk : 0));
  put_two(out, 0);
}

unsigned flags_of(const Message& message) {
  const auto bit = [](bool set, unsigned place) { return (set ? 1U : 0U) << place; };
  return bit(message.response, 15) | (message.opcode & 0xfU) << 11 |
         bit(message.authoritative, 10) | bit(message.truncated, 9) |
         bit(message.recursion_desired, 8) | bit(message.recursion_available, 7) |
         bit(message.authentic_data, 5) | bit(message.checking_disabled, 4) |
         (static_cast<unsigned>(message.rcode) & 0xf);
}

void set_flags(Message& message, unsigned flags) {
  const auto bit = [&](unsigned place) { return (flags >> place & 1) != 0; };
  message.response = bit(15);
  message.opcode = flags >> 11 & 0xf;
  message.authoritative = bit(10);
  message.truncated = bit(9);
  message.recursion_desired = bit(8);
  message.recursion_available = bit(7);
  message.authentic_data = bit(5);
  message.checking_disabled = bit(4);
  message.rcode = static_cast<Rcode>(flags & 0xf);
}

}  // namespace

Result<Message> parse(std::string_view bytes) {
  if (bytes.size() < kHeader) return broken("no header");
  if (bytes.size() > kLongestMessage) return broken("too long");
  Reader reader(bytes);
  Message out;
  out.id = reader.two();
  set_flags(out, reader.two());
  const unsigned questions = reader.two();
  const unsigned answers = reader.two();
  const unsigned authority = reader.two();
  const unsigned additional = reader.two();
  for (unsigned i = 0; i < questions; ++i) {
    Question& one = out.questions.emplace_back();
    DIBS_TRY(one.name, reader.name());
    if (!reader.has(4)) return broken("a question goes on behind the end");
    one.type = reader.two();
    one.klass = reader.two();
  }
  DIBS_CHECK(read_records(reader, answers, out.answers, out));
  DIBS_CHECK(read_records(reader, authority, out.authority, out));
  DIBS_CHECK(read_records(reader, additional, out.additional, out));
  return out;
}

std::string write(const Message& message, std::size_t limit) {
  const std::size_t room = message.edns && limit >= kOptSize ? limit - kOptSize : limit;
  Writer writer;
  put_two(writer.out, message.id);
  writer.out.append(kHeader - 2, '\0');
  unsigned questions = 0;
  for (const auto& one : message.questions) {
    writer.name(one.name.wire());
    put_two(writer.out, one.type);
    put_two(writer.out, one.klass);
    ++questions;
  }
  unsigned counts[3] = {};
  Message about;  // only its flags count
  set_flags(about, flags_of(message));
  const bool whole = write_section(writer, message.answers, room, counts[0]) &&
                     write_section(writer, message.authority, room, counts[1]);
  if (!whole) about.truncated = true;
  if (whole) write_section(writer, message.additional, room, counts[2]);
  if (message.edns) {
    write_edns(writer.out, message);
    ++counts[2];
  }
  std::string head;
  put_two(head, flags_of(about));
  for (const unsigned count : {questions, counts[0], counts[1], counts[2]}) put_two(head, count);
  writer.out.replace(2, head.size(), head);
  return std::move(writer.out);
}

std::string srv_data(std::uint16_t priority, std::uint16_t weight, std::uint16_t port,
                     const Name& target) {
  std::string out;
  for (const unsigned number : {priority, weight, port}) put_two(out, number);
  return out + target.wire();
}

std::string soa_data(const Name& server, const Name& mailbox, std::uint32_t serial,
                     std::uint32_t negative_ttl) {
  constexpr std::uint32_t kRefresh = 7200;
  constexpr std::uint32_t kRetry = 1800;
  constexpr std::uint32_t kExpire = 86400;
  std::string out = server.wire() + mailbox.wire();
  for (const auto number : {serial, kRefresh, kRetry, kExpire, negative_ttl}) put_four(out, number);
  return out;
}

std::string txt_data(std::string_view text) {
  text = text.substr(0, 255);
  return cat(static_cast<char>(text.size()), text);
}

std::optional<Name> name_in(std::string_view data) {
  std::vector<std::string_view> labels;
  for (std::size_t at = 0; at < data.size();) {
    const auto length = static_cast<std::uint8_t>(data[at]);
    if (length == 0) return Name::from_labels(labels);
    if (data.size() - at - 1 < length) return std::nullopt;
    labels.push_back(data.substr(at + 1, length));
    at += 1 + length;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> negative_ttl(const Message& message) {
  for (const auto& record : message.authority) {
    if (record.type != type::soa || record.data.size() < 4) continue;
    Reader tail(std::string_view(record.data).substr(record.data.size() - 4));
    return std::min(record.ttl, tail.four());
  }
  return std::nullopt;
}

}  // namespace dibs::dns
