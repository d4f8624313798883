#include "json/parse.h"

#include <simdjson.h>

#include "json/builder.h"
#include "json/go_parser.h"

namespace dibs::json {
namespace {

namespace dom = simdjson::dom;

// A parser keeps its buffers; those of a large text are not kept for the thread's life.
constexpr std::size_t kKeepUpTo = 256 * 1024;

struct Frame {
  Value* into;
  bool object;
  dom::array::iterator item, item_end;
  dom::object::iterator member, member_end;
};

// A scalar or an empty container. Containers get room for what they will hold.
Value shallow(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY:
      return Builder::make(Kind::array, dom::array(element).size());
    case dom::element_type::OBJECT:
      return Builder::make(Kind::object, dom::object(element).size());
    case dom::element_type::INT64:
      return Value(static_cast<long long>(std::int64_t(element)));
    case dom::element_type::UINT64:
      return Value(static_cast<double>(std::uint64_t(element)));
    case dom::element_type::DOUBLE:
      return Value(double(element));
    case dom::element_type::STRING:
      return Value(std::string_view(element));
    case dom::element_type::BOOL:
      return Value(bool(element));
    case dom::element_type::NULL_VALUE:
      break;
  }
  return Value();
}

// False when a key occurs twice. Does not recurse: the text may be nested 10,000 deep.
bool build(const dom::element& root, Value& out) {
  std::vector<Frame> frames;
  auto enter = [&](const dom::element& element, Value* into) {
    *into = shallow(element);
    if (into->is_array()) {
      const dom::array array(element);
      if (array.begin() != array.end()) {
        frames.push_back({into, false, array.begin(), array.end(), {}, {}});
      }
    } else if (into->is_object()) {
      const dom::object object(element);
      if (object.begin() != object.end()) {
        frames.push_back({into, true, {}, {}, object.begin(), object.end()});
      }
    }
  };
  enter(root, &out);
  while (!frames.empty()) {
    Frame& frame = frames.back();
    Value* into = nullptr;
    dom::element element;
    if (frame.object) {
      if (!(frame.member != frame.member_end)) {
        frames.pop_back();
        continue;
      }
      into = Builder::add(*frame.into, Value(frame.member.key()));
      if (into == nullptr) return false;
      element = frame.member.value();
      ++frame.member;
    } else {
      if (!(frame.item != frame.item_end)) {
        frames.pop_back();
        continue;
      }
      into = Builder::push(*frame.into);
      element = *frame.item;
      ++frame.item;
    }
    enter(element, into);
  }
  return true;
}

}  // namespace

Result<Value> parse(std::string_view text, const ParseOptions& options) {
  if (text.data() == nullptr) text = "";  // simdjson copies from it, whatever its size
  thread_local dom::parser kept;
  dom::parser once;
  dom::parser& parser = text.size() <= kKeepUpTo ? kept : once;
  Value value;
  try {
    const std::size_t capacity =
        text.size() <= kKeepUpTo ? std::max<std::size_t>(text.size(), 4096) : text.size();
    if (parser.capacity() < capacity || parser.max_depth() != options.max_depth) {
      if (parser.allocate(capacity, options.max_depth) != simdjson::SUCCESS) {
        return parse_as_go(text, options);
      }
    }
    dom::element root;
    if (parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS &&
        build(root, value)) {
      return value;
    }
  } catch (const simdjson::simdjson_error& error) {
    return Error::internal(error.what());
  }
  return parse_as_go(text, options);
}

}  // namespace dibs::json
