#include "json/go_words.h"

namespace dibs::json {

std::string_view go_kind(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
    case Kind::number:
      return "number";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
  }
  return "";
}

}  // namespace dibs::json
