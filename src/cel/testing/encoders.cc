#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/testing/spec_libraries.h"

namespace dibs::cel {

namespace {

Value encode(const Value* arguments, std::size_t) {
  return Value::string(base64_encode(arguments[0].text()));
}

/// With or without padding.
Value decode(const Value* arguments, std::size_t) {
  std::string text(arguments[0].text());
  while (text.size() % 4 != 0) text += '=';
  std::string bytes;
  if (!base64_decode(text, bytes)) return Value::error("illegal base64 data");
  return Value::bytes(std::move(bytes));
}

}  // namespace

void add_encoders(Environment& environment) {
  environment.function("base64.encode", {{"bytes -> string", encode, cost_scan_first}});
  environment.function("base64.decode", {{"string -> bytes", decode, cost_scan_first}});
}

}  // namespace dibs::cel
