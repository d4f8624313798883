#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/strings.h"
#include "json/builder.h"
#include "json/go_print.h"
#include "json/number.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "json/yaml_scalar.h"

namespace dibs::json {
namespace {

// libyaml looks at every open bracket for each token, so deep nesting is dear.
constexpr std::size_t kMostDepth = 500;
// Of all text, that which aliases repeat counted each time.
constexpr std::size_t kMostBytes = 64 * 1024 * 1024;
constexpr std::size_t kMostDuplicates = 100;

// How large a node is when its aliases are written out.
struct Extent {
  std::size_t nodes = 0;
  std::size_t bytes = 0;
  std::size_t depth = 0;
};

struct Node {
  Value value;
  Extent extent;
  std::size_t line = 0;  // from 1
  bool merge_key = false;
};

struct Frame {
  Node node;
  std::string anchor;
  std::size_t anchor_number = 0;
  bool has_key = false;
  bool merge = false;
  Value key;
  std::string key_shown;
};

struct Anchor {
  Node node;
  bool open = true;
  std::size_t number = 0;  // a name may be given anew, also inside the node it stands for
};

// The share of nodes that may come from aliases: 99 % in small documents, down to 10 % in large
// ones.
double allowed_alias_ratio(std::size_t nodes) {
  constexpr double kLow = 400000, kHigh = 4000000;
  const double count = static_cast<double>(nodes);
  if (count <= kLow) return 0.99;
  if (count >= kHigh) return 0.10;
  return 0.99 - 0.89 * ((count - kLow) / (kHigh - kLow));
}

Value sorted(Value object) {
  const Members members = object.members();
  auto before = [](const Member& a, const Member& b) { return a.key() < b.key(); };
  if (std::is_sorted(members.begin(), members.end(), before)) return object;
  std::vector<const Member*> order;
  for (const Member& member : members) order.push_back(&member);
  std::sort(order.begin(), order.end(),
            [](const Member* a, const Member* b) { return a->key() < b->key(); });
  Value made = Builder::make(Kind::object, order.size());
  for (const Member* member : order) {
    *Builder::add(made, Builder::key(*member)) = member->value();
  }
  return made;
}

// Deletes what libyaml allocated for an event.
struct Event {
  yaml_event_t raw{};
  ~Event() { yaml_event_delete(&raw); }
};

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

class Composer {
 public:
  explicit Composer(std::string_view text, YamlLines* lines = nullptr) : lines_(lines) {
    yaml_parser_initialize(&parser_);
    // A view of nothing may have no address, which the parser does not take.
    if (text.empty()) text = "";
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;
  ~Composer() { yaml_parser_delete(&parser_); }

  /// The next document; false at the end of the stream and after an error.
  bool next(Value& document) {
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser_, &event.raw) == 0) return fail_in_parser();
      switch (event.raw.type) {
        case YAML_STREAM_END_EVENT:
        case YAML_NO_EVENT:
          return false;
        case YAML_DOCUMENT_END_EVENT:
          document = std::move(root_);
          return true;
        case YAML_DOCUMENT_START_EVENT:
          begin_document();
          break;
        default:
          if (!take(event.raw)) return false;
      }
    }
  }

  const std::string& error() const { return error_; }
  const std::vector<std::string>& duplicates() const { return duplicates_; }

 private:
  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  template <typename... Pieces>
  bool fail_yaml(const Pieces&... pieces) {
    return fail(cat("yaml: ", pieces...));
  }

  bool fail_in_parser() {
    std::size_t line = parser_.problem_mark.line;
    if (line != 0) {
      if (parser_.error == YAML_SCANNER_ERROR) ++line;
    } else {
      line = parser_.context_mark.line;
    }
    const char* problem = parser_.problem != nullptr && *parser_.problem != '\0'
                              ? parser_.problem
                              : "unknown problem parsing YAML content";
    if (line == 0) return fail_yaml(problem);
    return fail_yaml("line ", line, ": ", problem);
  }

  void begin_document() {
    root_ = Value();
    anchors_.clear();
    frames_.clear();
    nodes_ = alias_nodes_ = bytes_ = 0;
  }

  bool take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line + 1;
    const bool ends = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    if (!ends && !frames_.empty() && frames_.back().node.value.is_array()) note(line);
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return take_scalar(event, line);
      case YAML_ALIAS_EVENT:
        return take_alias(text_of(event.data.alias.anchor), line);
      case YAML_SEQUENCE_START_EVENT:
        return open(Value::array(), text_of(event.data.sequence_start.anchor), line);
      case YAML_MAPPING_START_EVENT:
        return open(Value::object(), text_of(event.data.mapping_start.anchor), line);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close();
      default:
        return true;
    }
  }

  bool open(Value container, std::string_view anchor, std::size_t line) {
    if (frames_.size() >= kMostDepth) return fail_yaml("exceeded max depth of ", kMostDepth);
    Frame frame;
    frame.node.value = std::move(container);
    frame.node.extent = {1, 0, 1};
    frame.node.line = line;
    if (!anchor.empty()) {
      frame.anchor = anchor;
      frame.anchor_number = ++anchor_count_;
      anchors_[frame.anchor] = {{}, true, frame.anchor_number};
    }
    frames_.push_back(std::move(frame));
    return count(1, 0, false);
  }

  bool close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.node.value.is_object()) frame.node.value = sorted(std::move(frame.node.value));
    if (!frame.anchor.empty()) {
      Anchor& anchor = anchors_[frame.anchor];
      if (anchor.number == frame.anchor_number) anchor = {frame.node, false, anchor.number};
    }
    return attach(std::move(frame.node));
  }

  bool take_alias(std::string_view name, std::size_t line) {
    const auto found = anchors_.find(std::string(name));
    if (found == anchors_.end()) return fail_yaml("unknown anchor '", name, "' referenced");
    if (found->second.open) return fail_yaml("anchor '", name, "' value contains itself");
    Node node = found->second.node;
    node.line = line;
    node.merge_key = false;
    node.extent.nodes += 1;
    if (!count(node.extent.nodes, node.extent.bytes, true)) return false;
    if (frames_.size() + node.extent.depth > kMostDepth) {
      return fail_yaml("exceeded max depth of ", kMostDepth);
    }
    return attach(std::move(node));
  }

  bool take_scalar(const yaml_event_t& event, std::size_t line) {
    const auto& raw = event.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(raw.value), raw.length);
    const YamlTag tag = yaml_tag(text_of(raw.tag));
    Node node;
    node.line = line;
    node.extent = {1, text.size(), 0};
    if (tag == YamlTag::none && raw.plain_implicit == 0) {
      node.value = Value(text);
    } else {
      YamlTag was = YamlTag::none;
      auto scalar = resolve_yaml(tag, text, was);
      if (!scalar) {
        return fail_yaml("cannot decode ", short_name(was), " `", text, "` as a ", short_name(tag));
      }
      node.value = std::move(scalar->value);
      node.merge_key = text == "<<" && (raw.plain_implicit != 0 || tag == YamlTag::merge);
      if (tag == YamlTag::binary) {
        std::string bytes;
        if (!base64_decode(text, bytes)) {
          return fail_yaml("!!binary value contains invalid base64 data");
        }
        node.value = Value(bytes);
      }
    }
    const std::string_view anchor = text_of(raw.anchor);
    if (!anchor.empty()) anchors_[std::string(anchor)] = {node, false, ++anchor_count_};
    if (!count(1, text.size(), false)) return false;
    return attach(std::move(node));
  }

  // Keeps account of what the document would be without aliases, as upstream does.
  bool count(std::size_t nodes, std::size_t bytes, bool alias) {
    nodes_ += nodes;
    if (alias) alias_nodes_ += nodes;
    bytes_ += bytes;
    const double share = static_cast<double>(alias_nodes_) / static_cast<double>(nodes_);
    const bool too_many =
        alias_nodes_ > 100 && nodes_ > 1000 && share > allowed_alias_ratio(nodes_);
    if (too_many || (alias && bytes_ > kMostBytes)) {
      return fail_yaml("document contains excessive aliasing");
    }
    return true;
  }

  // Hands a whole node to what it stands in.
  bool attach(Node node) {
    if (frames_.empty()) {
      if (!check_number(node.value)) return false;
      root_ = std::move(node.value);
      return true;
    }
    Frame& frame = frames_.back();
    Extent& extent = frame.node.extent;
    extent.nodes += node.extent.nodes;
    extent.bytes += node.extent.bytes;
    extent.depth = std::max(extent.depth, node.extent.depth + 1);
    if (frame.node.value.is_array()) {
      if (!check_number(node.value)) return false;
      frame.node.value.push(std::move(node.value));
      return true;
    }
    if (!frame.has_key) {
      const std::size_t line = node.line;
      if (!take_key(frame, std::move(node))) return false;
      note(line);
      return true;
    }
    frame.has_key = false;
    if (frame.merge) return merge(frame, node);
    if (!check_number(node.value)) return false;
    return set(frame, frame.key.as_string(), frame.key_shown, std::move(node.value), node.line);
  }

  /// That what is being read stands there.
  void note(std::size_t line) {
    if (lines_ == nullptr) return;
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.node.value.is_array()) {
        append(path, '[', frame.node.value.size(), ']');
      } else {
        append(path, path.empty() ? "" : ".", frame.key.as_string());
      }
    }
    lines_->emplace(std::move(path), line);
  }

  bool check_number(const Value& value) {
    if (value.kind() != Kind::number || std::isfinite(value.as_double())) return true;
    std::string shown;
    append_short_double(shown, value.as_double());
    return fail(cat("json: unsupported value: ", shown));
  }

  bool take_key(Frame& frame, Node node) {
    frame.has_key = true;
    frame.merge = node.merge_key;
    frame.key_shown.clear();
    const Value& value = node.value;
    switch (value.kind()) {
      case Kind::array:
      case Kind::object:
        return fail_yaml("invalid map key: ", go_syntax(value, GoKeys::any));
      case Kind::null:
        return fail("unsupported map key of type: %!s(<nil>), key: interface {}(nil)");
      case Kind::string:
        frame.key = value;
        return true;
      case Kind::boolean:
        frame.key_shown = value.as_bool() ? "true" : "false";
        break;
      case Kind::integer:
        frame.key_shown = std::to_string(value.as_int());
        break;
      case Kind::number: {
        append_short_double(frame.key_shown, value.as_double());
        std::string key;
        append_short_double(key, value.as_double(), true);
        frame.key = Value(key == "+Inf"   ? ".inf"
                          : key == "-Inf" ? "-.inf"
                          : key == "NaN"  ? ".nan"
                                          : key);
        return true;
      }
    }
    frame.key = Value(frame.key_shown);
    return true;
  }

  // `shown` is the key as Go prints it; empty for a string.
  bool set(Frame& frame, std::string_view key, std::string_view shown, Value value,
           std::size_t line) {
    const std::size_t before = frame.node.value.size();
    Value& place = frame.node.value.mut(key);
    if (frame.node.value.size() == before && duplicates_.size() < kMostDuplicates) {
      const std::string name = shown.empty() ? quoted(key) : std::string(shown);
      duplicates_.push_back(cat("line ", line, ": key ", name, " already set in map"));
    }
    place = std::move(value);
    return true;
  }

  bool merge(Frame& frame, const Node& node) {
    auto take_all = [&](const Value& from) {
      for (const auto& [key, value] : from.members()) set(frame, key, {}, value, node.line);
    };
    if (node.value.is_object()) {
      take_all(node.value);
      return true;
    }
    bool maps = node.value.is_array();
    for (const Value& item : node.value.items()) maps = maps && item.is_object();
    if (!maps) return fail_yaml("map merge requires map or sequence of maps as the value");
    // Backwards: earlier maps go before later ones.
    for (std::size_t i = node.value.size(); i > 0; --i) take_all(node.value[i - 1]);
    return true;
  }

  YamlLines* lines_ = nullptr;
  yaml_parser_t parser_;
  Value root_;
  std::vector<Frame> frames_;
  std::unordered_map<std::string, Anchor> anchors_;
  std::size_t anchor_count_ = 0;
  std::size_t nodes_ = 0;
  std::size_t alias_nodes_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::string> duplicates_;
  std::string error_;
};

Error duplicates_error(const std::vector<std::string>& duplicates) {
  std::string message = "yaml: unmarshal errors:";
  for (const std::string& line : duplicates) append(message, "\n  ", line);
  return Error::bad_request(std::move(message));
}

}  // namespace

Result<Value> parse_yaml(std::string_view text, std::vector<std::string>* duplicates,
                         YamlLines* lines) {
  Composer composer(text, lines);
  Value document;
  composer.next(document);
  if (!composer.error().empty()) return Error::bad_request(composer.error());
  if (duplicates != nullptr) {
    *duplicates = composer.duplicates();
  } else if (!composer.duplicates().empty()) {
    return duplicates_error(composer.duplicates());
  }
  return document;
}

Result<std::vector<Value>> parse_yaml_stream(std::string_view text) {
  Composer composer(text);
  std::vector<Value> documents;
  Value document;
  while (composer.next(document)) {
    if (!document.is_null()) documents.push_back(std::move(document));
  }
  if (!composer.error().empty()) return Error::bad_request(composer.error());
  if (!composer.duplicates().empty()) return duplicates_error(composer.duplicates());
  return documents;
}

}  // namespace dibs::json
