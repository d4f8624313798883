#include "base/strings.h"
#include "drivers/net/objects/install.h"
#include "drivers/net/objects/texts.h"
#include "json/yaml.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// `reason` and `fieldPath` of a rule.
constexpr int kRulesHavePaths = 28;

bool is_part(std::string_view name) { return name.ends_with(".part.yaml"); }

class Assembly {
 public:
  Assembly(const Value& parts, int release) : parts_(parts), release_(release) {}

  Value value(const Value& from) const {
    if (from.is_array()) return list(from);
    if (!from.is_object()) return from;
    const std::string_view piece = from["include"].as_string();
    // A piece that is a list stands alone: {include: …} as the value of a key.
    if (!piece.empty() && parts_[piece].is_array()) return list(parts_[piece]);
    Value out = Value::object();
    if (!piece.empty()) {
      for (const auto& [key, member] : parts_[piece].members()) out.set(key, value(member));
    }
    for (const auto& [key, member] : from.members()) {
      if (key == "include" && !piece.empty()) continue;
      Value made = value(member);
      if (key == "x-kubernetes-validations" && made.empty()) continue;
      out.set(key, std::move(made));
    }
    return out;
  }

 private:
  Value list(const Value& from) const {
    Value out = Value::array();
    for (const auto& item : from.items()) {
      const std::string_view piece = item["include"].as_string();
      if (!piece.empty() && parts_[piece].is_array()) {
        const Value made = list(parts_[piece]);
        for (const auto& one : made.items()) out.push(one);
      } else if (item["since"].as_int() <= release_) {
        out.push(rule(value(item)));
      }
    }
    return out;
  }

  Value rule(Value item) const {
    if (!item["rule"].is_string()) return item;
    item.erase("since");
    if (release_ < kRulesHavePaths) {
      item.erase("reason");
      item.erase("fieldPath");
    }
    return item;
  }

  const Value& parts_;
  const int release_;
};

}  // namespace

Result<std::vector<Value>> crds(int release) {
  Value parts = Value::object();
  std::vector<Value> whole;
  for (const auto& [name, text] : texts()) {
    auto parsed = json::parse_yaml(text);
    if (!parsed) return parsed.error().within(name);
    if (!is_part(name)) {
      whole.push_back(std::move(parsed).value());
      continue;
    }
    for (const auto& [key, piece] : parsed->members()) parts.set(key, piece);
  }
  const Assembly assembly(parts, release);
  std::vector<Value> out;
  for (const auto& definition : whole) out.push_back(assembly.value(definition));
  return out;
}

}  // namespace dibs::drivers::net
