#include <algorithm>

#include "base/strings.h"
#include "json/number.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "json/yaml_scalar.h"
#include "json/yaml_style.h"

namespace dibs::json {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kLongestSimpleKey = 128;

class Writer {
 public:
  void write(const Value& root) {
    open(root, 0, Place::root);
    while (!frames_.empty()) step();
    if (column_ > 0) new_line();
  }

  std::string take() { return std::move(out_); }

 private:
  enum class Place { root, item, member };

  // A container that is being written.
  struct Frame {
    const Value* list = nullptr;
    std::vector<const Member*> members;  // sorted
    std::size_t next = 0;
    std::size_t indent = 0;
    bool starts_inline = false;  // the first entry goes on the line of what is before it
  };

  void put(char c) {
    out_.push_back(c);
    ++column_;
  }
  void put(std::string_view text) {  // plain ASCII
    out_.append(text);
    column_ += text.size();
  }
  void put_rune(std::string_view text, std::size_t at, std::size_t length) {
    out_.append(text.substr(at, length));
    ++column_;
  }
  void new_line() {
    out_.push_back('\n');
    column_ = 0;
  }
  void line_at(std::size_t indent) {
    if (column_ > 0) new_line();
    pad_to(indent);
  }
  void pad_to(std::size_t indent) {
    while (column_ < indent) put(' ');
  }

  // A value after "key:", after "-", or as the whole; `indent` is that of the container it stands
  // in.
  void open(const Value& value, std::size_t indent, Place place, bool complex_key = false) {
    if ((value.is_array() || value.is_object()) && !value.empty()) {
      Frame frame;
      frame.starts_inline = place == Place::item || complex_key;
      const bool deeper = place != Place::root && !(value.is_array() && !frame.starts_inline);
      frame.indent = deeper ? indent + 2 : indent;
      if (value.is_array()) {
        frame.list = &value;
      } else {
        frame.members = in_order(value);
      }
      frames_.push_back(std::move(frame));
      return;
    }
    if (place != Place::root) put(' ');
    const std::size_t inside = indent + 2;
    switch (value.kind()) {
      case Kind::null:
        put("null");
        break;
      case Kind::boolean:
        put(value.as_bool() ? "true" : "false");
        break;
      case Kind::integer:
      case Kind::number:
        put(number_text(value));
        break;
      case Kind::string:
        write_text(value.as_string(), inside, false);
        break;
      case Kind::array:
        put("[]");
        break;
      case Kind::object:
        put("{}");
        break;
    }
  }

  void step() {
    Frame& frame = frames_.back();
    const std::size_t size = frame.list != nullptr ? frame.list->size() : frame.members.size();
    if (frame.next == size) {
      frames_.pop_back();
      return;
    }
    const std::size_t indent = frame.indent;
    if (frame.next == 0 && frame.starts_inline) {
      pad_to(indent);
    } else {
      line_at(indent);
    }
    if (frame.list != nullptr) {
      const Value& item = (*frame.list)[frame.next++];
      put('-');
      open(item, indent, Place::item);
      return;
    }
    const Member& member = *frame.members[frame.next++];
    const bool simple = member.key().size() <= kLongestSimpleKey &&
                        !yaml_styles_of(valid(member.key()), false).multiline;
    if (!simple) put("? ");
    write_text(member.key(), indent + 2, simple);
    if (!simple) line_at(indent);
    put(':');
    open(member.value(), indent, Place::member, !simple);
  }

  static std::string number_text(const Value& value) {
    std::string text = json::write(value);
    // A whole number that fits 64 bits keeps its digits; the others take the form of floats.
    const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
    if (text == "-0") return "0";
    if (value.is_integer() || (whole && text.size() < 19)) return text;
    const double number = value.as_double();
    if (whole && number > -9223372036854775809.0 && number < 18446744073709551616.0) return text;
    text.clear();
    append_short_double(text, number);
    return text;
  }

  // Text that is not UTF-8 goes through JSON upstream, which mends it.
  std::string_view valid(std::string_view text) {
    if (is_valid_utf8(text)) return text;
    mended_ = mend_utf8(text);
    return mended_;
  }

  // `indent` is for the lines after the first. A key stays on one line.
  void write_text(std::string_view given, std::size_t indent, bool key) {
    const std::string_view text = valid(given);
    const YamlStyles can = yaml_styles_of(text, false);
    if (text.find('\n') != std::string_view::npos) {
      if (can.literal && !key) return write_literal(text, indent);
      return write_double_quoted(text, indent, key);
    }
    if (!is_plain_yaml_string(text)) return write_double_quoted(text, indent, key);
    if (can.plain) return write_plain(text, indent, key);
    if (can.single && !(key && can.multiline)) return write_single_quoted(text, indent, key);
    write_double_quoted(text, indent, key);
  }

  void fold(std::size_t indent) {
    new_line();
    pad_to(indent);
  }

  void write_plain(std::string_view text, std::size_t indent, bool key) {
    bool spaces = false;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = rune_at(text, at).length;
      const bool space = text[at] == ' ';
      if (space && !key && !spaces && column_ > kWidth && text[at + 1] != ' ') {
        fold(indent);
      } else {
        put_rune(text, at, length);
      }
      spaces = space;
      at += length;
    }
  }

  void write_single_quoted(std::string_view text, std::size_t indent, bool key) {
    put('\'');
    bool spaces = false;
    bool breaks = false;
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = rune_at(text, at);
      if (rune.code == ' ') {
        const bool inside = at > 0 && at + 1 < text.size() && text[at + 1] != ' ';
        if (!key && !spaces && column_ > kWidth && inside) {
          fold(indent);
        } else {
          put(' ');
        }
        spaces = true;
      } else if (is_yaml_break(rune.code)) {
        out_.append(text.substr(at, rune.length));
        column_ = 0;
        breaks = true;
      } else {
        if (breaks) pad_to(indent);
        if (rune.code == '\'') put('\'');
        put_rune(text, at, rune.length);
        spaces = breaks = false;
      }
      at += rune.length;
    }
    put('\'');
  }

  void write_double_quoted(std::string_view text, std::size_t indent, bool key) {
    put('"');
    bool spaces = false;
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = rune_at(text, at);
      const std::uint32_t c = rune.code;
      if (!is_yaml_printable(c) || is_yaml_break(c) || c == '"' || c == '\\') {
        write_escape(c);
        spaces = false;
      } else if (c == ' ') {
        if (!key && !spaces && column_ > kWidth && at > 0 && at + 1 < text.size()) {
          fold(indent);
          if (text[at + 1] == ' ') put('\\');
        } else {
          put(' ');
        }
        spaces = true;
      } else {
        put_rune(text, at, rune.length);
        spaces = false;
      }
      at += rune.length;
    }
    put('"');
  }

  void write_escape(std::uint32_t c) {
    const std::size_t before = out_.size();
    append_yaml_escape(out_, c);
    column_ += out_.size() - before;
  }

  void write_literal(std::string_view text, std::size_t indent) {
    put('|');
    if (text.front() == ' ' || is_yaml_break(rune_at(text, 0).code)) put('2');
    bool ends = false, ends_twice = false;
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = rune_at(text, at);
      ends_twice = is_yaml_break(rune.code) && (ends || at == 0);
      ends = is_yaml_break(rune.code);
      at += rune.length;
    }
    if (!ends) {
      put('-');
    } else if (ends_twice) {
      put('+');
    }
    new_line();
    bool breaks = true;
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = rune_at(text, at);
      if (is_yaml_break(rune.code)) {
        out_.append(text.substr(at, rune.length));
        column_ = 0;
        breaks = true;
      } else {
        if (breaks) pad_to(indent);
        put_rune(text, at, rune.length);
        breaks = false;
      }
      at += rune.length;
    }
  }

  static std::vector<const Member*> in_order(const Value& object);

  std::string out_;
  std::string mended_;
  std::size_t column_ = 0;
  std::vector<Frame> frames_;
};

bool is_digit(std::uint32_t c) { return c >= '0' && c <= '9'; }

// Letters beyond ASCII: all but the blocks of signs and punctuation.
bool is_letter(std::uint32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  if (c < 0xc0) return c == 0xaa || c == 0xb5 || c == 0xba;
  return c != 0xd7 && c != 0xf7 && !(c >= 0x2000 && c <= 0x2bff) && !(c >= 0x3000 && c <= 0x303f) &&
         !(c >= 0xfe00 && c <= 0xfe6f) && !(c >= 0xff00 && c <= 0xff20) && c != 0xfffd &&
         !(c >= 0x1f000 && c <= 0x1faff);
}

// go-yaml's order of keys: signs before letters, and numbers inside keys by size.
bool key_before(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::uint32_t ca = 0, cb = 0;
  while (true) {
    if (i >= a.size() || i >= b.size()) return a.size() < b.size();
    const Rune ra = rune_at(a, i);
    const Rune rb = rune_at(b, i);
    ca = ra.code;
    cb = rb.code;
    if (ca != cb) break;
    i += ra.length;
  }
  const bool la = is_letter(ca), lb = is_letter(cb);
  if (la && lb) return ca < cb;
  if (la || lb) return lb;
  std::uint64_t na = 0, nb = 0;
  if (ca == '0' || cb == '0') {
    for (std::size_t j = i; j > 0 && is_digit(static_cast<unsigned char>(a[j - 1])); --j) {
      if (a[j - 1] != '0') {
        na = nb = 1;
        break;
      }
    }
  }
  std::size_t ea = i, eb = i;
  for (; ea < a.size() && is_digit(static_cast<unsigned char>(a[ea])); ++ea) {
    na = na * 10 + static_cast<std::uint64_t>(a[ea] - '0');
  }
  for (; eb < b.size() && is_digit(static_cast<unsigned char>(b[eb])); ++eb) {
    nb = nb * 10 + static_cast<std::uint64_t>(b[eb] - '0');
  }
  if (na != nb) return static_cast<std::int64_t>(na) < static_cast<std::int64_t>(nb);
  if (ea != eb) return ea < eb;
  return ca < cb;
}

std::vector<const Member*> Writer::in_order(const Value& object) {
  std::vector<const Member*> order;
  for (const Member& member : object.members()) order.push_back(&member);
  std::stable_sort(order.begin(), order.end(),
                   [](const Member* a, const Member* b) { return key_before(a->key(), b->key()); });
  return order;
}

}  // namespace

std::string write_yaml(const Value& value) {
  Writer writer;
  writer.write(value);
  return writer.take();
}

}  // namespace dibs::json
