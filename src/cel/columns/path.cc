#include "cel/columns/path.h"

#include <cstring>
#include <typeinfo>

#include "cel/operations.h"

namespace dibs::cel {

namespace {

template <typename T>
void append_bytes(std::string& out, const T& value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void append_text(std::string& out, std::string_view text) {
  append_bytes(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

ReadState read_step(const Value& container, const PathStep& step, Value& out) {
  if (step.contains) {
    if (!container.is(Kind::map)) return ReadState::stuck;
    out = Value::boolean(container.as_map().contains(step.key));
    return ReadState::value;
  }
  switch (container.kind()) {
    case Kind::map:
      return container.as_map().find(step.key, out) ? ReadState::value : ReadState::no_key;
    case Kind::opaque:
      return step.key.is(Kind::string) && container.as_opaque().field(step.key.text(), out)
                 ? ReadState::value
                 : ReadState::no_field;
    case Kind::list: {
      std::int64_t position;
      if (!list_position(step.key, position)) return ReadState::stuck;
      const List& list = container.as_list();
      if (position < 0 || static_cast<std::uint64_t>(position) >= list.size())
        return ReadState::no_element;
      out = list.at(static_cast<std::size_t>(position));
      return ReadState::value;
    }
    default:
      return ReadState::stuck;
  }
}

}  // namespace

std::string ColumnPath::name() const {
  std::string made;
  append_bytes(made, variable);
  for (const PathStep& step : steps) {
    made += step.contains ? '?' : '.';
    append_identity(made, step.key);
  }
  return made;
}

PathRead read_path(const ColumnPath& path, std::span<const Value> variables) {
  PathRead made;
  if (path.variable >= variables.size()) {
    made.value = Value::borrow("no such attribute", Kind::error);
    return made;
  }
  // Where the values lie in the row they are not copied: `next` is for those that do not.
  const Value* at = &variables[path.variable];
  Value next;
  for (const PathStep& step : path.steps) {
    if (at != &next && at->is(Kind::map) && !step.contains) {
      if (const Value* found = at->as_map().peek(step.key)) {
        at = found;
        ++made.step;
        continue;
      }
    }
    Value found;
    made.state = read_step(*at, step, found);
    if (made.state != ReadState::value) {
      if (made.state == ReadState::stuck) made.value = *at;
      return made;
    }
    next = std::move(found);
    at = &next;
    ++made.step;
  }
  made.step = 0;
  made.value = *at;
  return made;
}

bool append_identity(std::string& out, const Value& value) {
  out += static_cast<char>(value.kind());
  bool address = false;
  switch (value.kind()) {
    case Kind::null:
      break;
    case Kind::boolean:
    case Kind::integer:
    case Kind::uinteger:
    case Kind::real:
    case Kind::duration:
      append_bytes(out, value.as_integer());
      break;
    case Kind::timestamp:
      append_bytes(out, value.timestamp_seconds());
      append_bytes(out, value.timestamp_nanos());
      break;
    case Kind::string:
    case Kind::bytes:
    case Kind::type:
    case Kind::error:
      append_text(out, value.text());
      break;
    case Kind::list: {
      // Classes of lists and maps have rules of their own; their content says the rest.
      const List& list = value.as_list();
      append_bytes(out, typeid(list).name());
      append_bytes(out, list.size());
      for (std::size_t i = 0; i < list.size(); ++i) address |= append_identity(out, list.at(i));
      break;
    }
    case Kind::map: {
      const Map& map = value.as_map();
      append_bytes(out, typeid(map).name());
      append_bytes(out, map.size());
      for (std::size_t i = 0; i < map.size(); ++i) {
        address |= append_identity(out, map.key_at(i));
        address |= append_identity(out, map.value_at(i));
      }
      break;
    }
    case Kind::optional:
      out += value.has_content() ? '1' : '0';
      if (value.has_content()) address = append_identity(out, value.content());
      break;
    case Kind::opaque: {
      const Opaque& opaque = value.as_opaque();
      append_bytes(out, typeid(opaque).name());
      const std::size_t begin = out.size();
      append_bytes(out, std::uint32_t{0});
      address = !opaque.identify(out);
      if (address) append_bytes(out, &opaque);
      const auto size = static_cast<std::uint32_t>(out.size() - begin);
      std::memcpy(out.data() + begin, &size, sizeof size);
      break;
    }
  }
  return address;
}

bool append_identity(std::string& out, const PathRead& read) {
  out += static_cast<char>(read.state);
  if (read.state != ReadState::value) append_bytes(out, read.step);
  if (read.state != ReadState::value && read.state != ReadState::stuck) return false;
  return append_identity(out, read.value);
}

}  // namespace dibs::cel
