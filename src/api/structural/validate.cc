#include "api/structural/validate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/structural/formats.h"
#include "api/structural/ratchet.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

/// One step from the root to a value; text is made of it only for a fault.
struct Trail {
  enum class Step : char { root, property, other, item };
  const Trail* parent = nullptr;
  Step step = Step::root;
  std::string_view key;
  std::size_t index = 0;

  std::string str() const {
    if (step == Step::root) return "";
    std::string text = parent->str();
    if (step == Step::item) return cat(text, "[", index, "]");
    // Undeclared properties get their dot even at the root.
    return text.empty() && step == Step::property ? std::string(key) : cat(text, ".", key);
  }
};

struct Issue {
  enum class Kind : char { plain, required, unsupported, too_long, too_many, type, invalid };
  Kind kind = Kind::plain;
  std::string name;     // the place, as the message spells it
  std::string message;  // tells issues apart, and is shown of some kinds
  Value value;
  std::vector<std::string> supported;
  std::int64_t count = 0;
  std::int64_t limit = 0;
};

/// What one schema makes of one value. `matches` says how much of it fitted: of several
/// alternatives that all fail, the one that fitted most is reported.
struct Outcome {
  std::vector<Issue> issues;
  int matches = 0;

  bool ok() const { return issues.empty(); }
  void add(Issue issue) {
    for (const Issue& known : issues) {
      if (known.message == issue.message) return;
    }
    issues.push_back(std::move(issue));
  }
  void merge(Outcome other) {
    for (Issue& issue : other.issues) add(std::move(issue));
    matches += other.matches;
  }
};

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_whole(double number) {
  // As upstream's helper: a double that differs from an integer by rounding only is one.
  if (std::isnan(number) || std::isinf(number) || std::abs(number) > 9007199254740991.0)
    return false;
  const double whole = std::trunc(number);
  const double difference = std::abs(number - whole);
  return number == whole || difference < 1e-9 ||
         (number != 0 && difference / std::min(std::abs(number) + std::abs(whole),
                                               std::numeric_limits<double>::max()) <
                             1e-9);
}

std::string_view type_of(const Value& value) {
  switch (value.kind()) {
    case json::Kind::null:
      return "null";
    case json::Kind::boolean:
      return "boolean";
    case json::Kind::integer:
      return "integer";
    case json::Kind::number:
      return "number";
    case json::Kind::string:
      return "string";
    case json::Kind::array:
      return "array";
    case json::Kind::object:
      return "object";
  }
  return "";
}

std::string_view format_of(const Value& value) {
  if (value.is_integer()) return "int64";
  return value.is_number() ? "float64" : "";
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

class Validator {
 public:
  /// Judges a part that may have an old value; forgives when both are equal.
  Outcome part(const Schema& schema, const Value& value, const Trail& trail, const OldPart* old) {
    Outcome outcome = whole(schema, value, trail, old);
    if (!outcome.ok() && old != nullptr && old->unchanged()) outcome.issues.clear();
    return outcome;
  }

 private:
  Outcome whole(const Schema& schema, const Value& value, const Trail& trail, const OldPart* old) {
    Outcome outcome;
    if (schema.rules == nullptr) return outcome;
    const Rules& rules = *schema.rules;
    if (value.is_null()) {
      if (!rules.types.empty() && !schema.nullable) {
        outcome.add(type_issue(trail, join(rules.types, ","), "null"));
      } else {
        ++outcome.matches;
      }
      outcome.merge(check_enum(rules, value, trail));
      return outcome;
    }
    auto take = [&](Outcome part) {
      outcome.merge(std::move(part));
      ++outcome.matches;
    };
    if (!rules.types.empty() || !rules.format.empty()) take(check_type(rules, value, trail));
    take(check_junctors(rules, value, trail, old));
    if (value.is_string()) {
      take(check_string(rules, value, trail));
      if (!rules.format.empty() && is_known_format("", rules.format))
        take(check_format(rules, value, trail));
    }
    if (value.is_number()) take(check_number(rules, value, trail));
    if (value.is_array()) take(check_list(rules, value, trail, old));
    take(check_enum(rules, value, trail));
    if (value.is_object()) take(check_object(schema, rules, value, trail, old));
    ++outcome.matches;
    return outcome;
  }

  static Issue make(Issue::Kind kind, std::string name, std::string message, Value value = {}) {
    Issue issue;
    issue.kind = kind;
    issue.name = std::move(name);
    issue.message = std::move(message);
    issue.value = std::move(value);
    return issue;
  }

  static Issue type_issue(const Trail& trail, std::string_view expected, std::string_view actual) {
    std::string name = trail.str();
    std::string message = cat(name, " in body must be of type ", expected, ": ", quoted(actual));
    return make(Issue::Kind::type, std::move(name), std::move(message), actual);
  }

  static Outcome check_type(const Rules& rules, const Value& value, const Trail& trail) {
    Outcome outcome;
    const auto type = type_of(value);
    const auto format = format_of(value);
    const bool has_type = contains(rules.types, type);
    const bool takes_numbers = contains(rules.types, "number") || contains(rules.types, "integer");
    const bool whole_number =
        type == "number" && is_whole(value.as_double()) && contains(rules.types, "integer");
    const bool widened = type == "integer" && contains(rules.types, "number");
    const bool textual = value.is_string() || value.is_array();
    if (!textual && !rules.format.empty() &&
        !(has_type || format == rules.format || whole_number || widened)) {
      outcome.add(type_issue(trail, rules.format, format));
    } else if (!takes_numbers && !rules.format.empty() && textual) {
      ++outcome.matches;
    } else if (!has_type && !whole_number && !widened) {
      outcome.add(type_issue(trail, join(rules.types, ","), type));
    } else {
      ++outcome.matches;
    }
    return outcome;
  }

  static Issue plain(std::string message) {
    return make(Issue::Kind::plain, "", std::move(message));
  }

  Outcome check_junctors(const Rules& rules, const Value& value, const Trail& trail,
                         const OldPart* old) {
    Outcome outcome;
    if (!rules.any_of.empty()) check_any(rules.any_of, value, trail, old, outcome);
    if (!rules.one_of.empty()) check_one(rules.one_of, value, trail, old, outcome);
    if (!rules.all_of.empty()) {
      std::size_t valid = 0;
      for (const Schema* schema : rules.all_of) {
        Outcome one = whole(*schema, value, trail, old);
        if (one.ok()) ++valid;
        outcome.merge(std::move(one));
      }
      if (valid != rules.all_of.size()) {
        outcome.add(plain(cat(quoted(trail.str()), " must validate all the schemas (allOf)",
                              valid == 0 ? ". None validated" : "")));
      }
    }
    if (rules.none_of != nullptr && whole(*rules.none_of, value, trail, old).ok()) {
      outcome.add(plain(cat(quoted(trail.str()), " must not validate the schema (not)")));
    }
    ++outcome.matches;
    return outcome;
  }

  void check_any(const std::vector<const Schema*>& schemas, const Value& value, const Trail& trail,
                 const OldPart* old, Outcome& outcome) {
    std::optional<Outcome> best;
    for (const Schema* schema : schemas) {
      Outcome one = whole(*schema, value, trail, old);
      if (one.ok()) {
        outcome.merge(std::move(one));
        return;
      }
      if (!best || one.matches > best->matches) best = std::move(one);
    }
    outcome.add(plain(cat(quoted(trail.str()), " must validate at least one schema (anyOf)")));
    outcome.merge(*std::move(best));
  }

  void check_one(const std::vector<const Schema*>& schemas, const Value& value, const Trail& trail,
                 const OldPart* old, Outcome& outcome) {
    std::optional<Outcome> best;
    std::optional<Outcome> first;
    int valid = 0;
    for (const Schema* schema : schemas) {
      Outcome one = whole(*schema, value, trail, old);
      if (one.ok()) {
        ++valid;
        best.reset();
        if (!first) first = std::move(one);
      } else if (valid == 0 && (!best || one.matches > best->matches)) {
        best = std::move(one);
      }
    }
    if (valid == 1) {
      outcome.merge(*std::move(first));
      return;
    }
    outcome.add(
        plain(cat(quoted(trail.str()), " must validate one and only one schema (oneOf). ",
                  valid == 0 ? "Found none valid" : cat("Found ", valid, " valid alternatives"))));
    if (best) outcome.merge(*std::move(best));
  }

  /// The first fault only.
  static Outcome check_string(const Rules& rules, const Value& value, const Trail& trail) {
    Outcome outcome;
    const auto text = value.as_string();
    if (rules.max_length || rules.min_length) {
      const auto length = static_cast<std::int64_t>(characters_in(text));
      std::string name;
      if (rules.max_length && length > *rules.max_length) {
        name = trail.str();
        Issue issue =
            make(Issue::Kind::too_long, name,
                 cat(name, " in body should be at most ", *rules.max_length, " chars long"));
        issue.limit = *rules.max_length;
        outcome.add(std::move(issue));
        return outcome;
      }
      if (rules.min_length && length < *rules.min_length) {
        name = trail.str();
        outcome.add(make(
            Issue::Kind::invalid, name,
            cat(name, " in body should be at least ", *rules.min_length, " chars long"), value));
        return outcome;
      }
    }
    if (rules.pattern && !rules.pattern->occurs_in(text)) {
      std::string name = trail.str();
      std::string message = cat(name, " in body should match '", rules.pattern->text(), "'");
      outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message), value));
    }
    return outcome;
  }

  static Outcome check_format(const Rules& rules, const Value& value, const Trail& trail) {
    Outcome outcome;
    if (!has_format(value.as_string(), rules.format)) {
      outcome.add(type_issue(trail, rules.format, value.as_string()));
    }
    return outcome;
  }

  /// Whether a number can be one of the schema's type and format at all; the value as well as its
  /// limits are asked.
  static bool in_range(const Rules& rules, const Value& number, std::string_view subject,
                       const Trail& trail, Outcome& outcome) {
    if (rules.types.size() != 1) return true;
    const std::string& type = rules.types[0];
    bool fits = true;
    if (type == "integer") {
      const double as_double = number.as_double();
      fits = number.is_integer() ||
             (std::trunc(as_double) == as_double && as_double >= -0x1p63 && as_double < 0x1p63);
      if (fits && rules.format == "int32") {
        fits = as_double >= std::numeric_limits<std::int32_t>::min() &&
               as_double <= std::numeric_limits<std::int32_t>::max();
      }
    } else if (type == "number" && rules.format == "float") {
      fits = std::abs(number.as_double()) <= std::numeric_limits<float>::max();
    }
    if (fits) return true;
    outcome.add(plain(
        rules.format.empty()
            ? cat(subject, " value must be of type ", type, " (default format) in ", trail.str())
            : cat(subject, " value must be of type ", type, " with format ", rules.format, " in ",
                  trail.str())));
    return false;
  }

  static Outcome check_number(const Rules& rules, const Value& value, const Trail& trail) {
    Outcome outcome;
    in_range(rules, value, "Checked", trail, outcome);
    if (rules.multiple_of) {
      Outcome part;
      const bool native =
          in_range(rules, *rules.multiple_of, "MultipleOf", trail, part) && value.is_integer();
      check_multiple(value, *rules.multiple_of, native, trail, part);
      outcome.merge(std::move(part));
    }
    if (rules.minimum) {
      Outcome part;
      const bool native =
          in_range(rules, *rules.minimum, "Minimum boundary", trail, part) && value.is_integer();
      check_bound(value, *rules.minimum, rules.exclusive_minimum, -1, native, trail, part);
      outcome.merge(std::move(part));
    }
    if (rules.maximum) {
      Outcome part;
      const bool native =
          in_range(rules, *rules.maximum, "Maximum boundary", trail, part) && value.is_integer();
      check_bound(value, *rules.maximum, rules.exclusive_maximum, 1, native, trail, part);
      outcome.merge(std::move(part));
    }
    ++outcome.matches;
    return outcome;
  }

  static std::int64_t to_int64(double number) {
    if (!(number < 0x1p63)) return std::numeric_limits<std::int64_t>::max();
    if (!(number >= -0x1p63)) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(number);
  }

  /// `native`: integers are compared as integers, the limit cut to one too.
  static void check_bound(const Value& value, double limit, bool exclusive, int side, bool native,
                          const Trail& trail, Outcome& outcome) {
    int order = 0;
    if (native) {
      const auto whole = to_int64(limit);
      order = value.as_int() < whole ? -1 : value.as_int() > whole ? 1 : 0;
    } else {
      order = value.as_double() < limit ? -1 : value.as_double() > limit ? 1 : 0;
    }
    if (order != side && !(exclusive && order == 0)) return;
    std::string name = trail.str();
    std::string message =
        cat(name, " in body should be ", side > 0 ? "less than " : "greater than ",
            exclusive ? "" : "or equal to ", native ? cat(to_int64(limit)) : json::go_float(limit));
    // Compared as a double it is shown as one.
    outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message),
                     native ? value : Value(value.as_double())));
  }

  static void check_multiple(const Value& value, double factor, bool native, const Trail& trail,
                             Outcome& outcome) {
    std::string name = trail.str();
    const std::string shown = native ? cat(to_int64(factor)) : json::go_float(factor);
    if (native ? to_int64(factor) <= 0 : factor <= 0) {
      std::string message =
          cat("factor MultipleOf declared for ", name, " must be positive: ", shown);
      outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message),
                       native ? Value(to_int64(factor)) : Value(factor)));
      return;
    }
    bool fits = false;
    if (native) {
      fits = value.as_int() % to_int64(factor) == 0;
    } else {
      const double number = value.as_double();
      fits = is_whole(factor < 1 ? 1 / factor * number : number / factor);
    }
    if (fits) return;
    std::string message = cat(name, " in body should be a multiple of ", shown);
    outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message),
                     native ? value : Value(value.as_double())));
  }

  Outcome check_list(const Rules& rules, const Value& value, const Trail& trail,
                     const OldPart* old) {
    Outcome outcome;
    if (rules.items != nullptr) {
      const auto olds = old == nullptr ? std::vector<const Value*>() : old->items();
      for (std::size_t i = 0; i < value.size(); ++i) {
        const Trail here{&trail, Trail::Step::item, {}, i};
        const auto child = olds.empty() ? std::nullopt : old->item(i, olds[i]);
        outcome.merge(part(*rules.items, value[i], here, child ? &*child : nullptr));
      }
    }
    const auto size = static_cast<std::int64_t>(value.size());
    if (rules.min_items && size < *rules.min_items) {
      std::string name = trail.str();
      std::string message = cat(name, " in body should have at least ", *rules.min_items, " items");
      outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message), size));
    }
    if (rules.max_items && size > *rules.max_items) {
      outcome.add(too_many(trail.str(), size, *rules.max_items, "items"));
    }
    ++outcome.matches;
    return outcome;
  }

  static Issue too_many(std::string name, std::int64_t count, std::int64_t limit,
                        std::string_view what) {
    std::string message = cat(name, " in body should have at most ", limit, " ", what);
    Issue issue = make(Issue::Kind::too_many, std::move(name), std::move(message));
    issue.count = count;
    issue.limit = limit;
    return issue;
  }

  static Outcome check_enum(const Rules& rules, const Value& value, const Trail& trail) {
    Outcome outcome;
    if (rules.enum_values.empty()) return outcome;
    for (const Value& allowed : rules.enum_values) {
      if (!allowed.is_null() && allowed == value) return outcome;
    }
    std::string name = trail.str();
    Issue issue =
        make(Issue::Kind::unsupported, name, cat(name, " in body should be one of"), value);
    for (const Value& allowed : rules.enum_values) {
      issue.supported.push_back(allowed.is_string() ? allowed.str() : json::write(allowed, true));
      append(issue.message, " ", issue.supported.back());
    }
    outcome.add(std::move(issue));
    return outcome;
  }

  Outcome check_object(const Schema& schema, const Rules& rules, const Value& value,
                       const Trail& trail, const OldPart* old) {
    Outcome outcome;
    const auto size = static_cast<std::int64_t>(value.size());
    if (rules.min_properties && size < *rules.min_properties) {
      std::string name = trail.str();
      std::string message =
          cat(name, " in body should have at least ", *rules.min_properties, " properties");
      outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message), size));
    }
    if (rules.max_properties && size > *rules.max_properties) {
      outcome.add(too_many(trail.str(), size, *rules.max_properties, "properties"));
    }
    check_others(schema, rules, value, trail, old, outcome);
    for (const auto& [key, member] : value.members()) {
      const Schema* declared = declared_schema(schema, rules, key);
      if (declared == nullptr) continue;
      outcome.merge(child(*declared, key, member, Trail::Step::property, trail, old));
    }
    for (const std::string& key : rules.required) {
      if (value.contains(key)) continue;
      std::string name = cat(trail.str(), ".", key);
      std::string message = cat(name, " in body is required");
      outcome.add(make(Issue::Kind::required, std::move(name), std::move(message)));
    }
    return outcome;
  }

  void check_others(const Schema& schema, const Rules& rules, const Value& value,
                    const Trail& trail, const OldPart* old, Outcome& outcome) {
    if (rules.additional != Additional::forbidden && rules.additional != Additional::schema) return;
    for (const auto& [key, member] : value.members()) {
      if (is_declared(schema, rules, key)) continue;
      if (rules.additional == Additional::schema) {
        outcome.merge(child(*rules.other, key, member, Trail::Step::other, trail, old));
        continue;
      }
      std::string name = trail.str();
      std::string message = cat(name, ".", key, " in body is a forbidden property");
      outcome.add(make(Issue::Kind::invalid, std::move(name), std::move(message), key));
    }
  }

  Outcome child(const Schema& schema, std::string_view key, const Value& member, Trail::Step step,
                const Trail& trail, const OldPart* old) {
    const Trail here{&trail, step, key, 0};
    // The type of the object itself cannot have been another before.
    const bool is_type = trail.step == Trail::Step::root && (key == "kind" || key == "apiVersion");
    const auto before = old == nullptr || is_type ? std::nullopt : old->member(key);
    return part(schema, member, here, before ? &*before : nullptr);
  }

  static const Schema* declared_schema(const Schema& schema, const Rules& rules,
                                       std::string_view key) {
    if (schema.embedded_resource && key == "metadata") return rules.metadata;
    const Field* field = schema.field(key);
    return field == nullptr ? nullptr : field->schema;
  }

  /// Fields that every object has are not declared by their presence alone.
  static bool is_declared(const Schema& schema, const Rules& rules, std::string_view key) {
    const Schema* declared = declared_schema(schema, rules, key);
    return declared != nullptr && declared->rules != nullptr;
  }
};

void report(const Outcome& outcome, const Path& path, FieldErrors& errors) {
  for (const Issue& issue : outcome.issues) {
    std::string_view name = issue.name;
    if (name.starts_with('.')) name.remove_prefix(1);
    const Path at = name.empty() ? path : path.child(name);
    switch (issue.kind) {
      case Issue::Kind::plain:
        errors.invalid(path, "", issue.message);
        break;
      case Issue::Kind::required:
        errors.required(at);
        break;
      case Issue::Kind::unsupported:
        errors.not_supported(at, issue.value, issue.supported);
        break;
      case Issue::Kind::too_long:
        errors.too_long(at, static_cast<std::size_t>(issue.limit));
        break;
      case Issue::Kind::too_many:
        errors.too_many(at, static_cast<std::size_t>(issue.count),
                        static_cast<std::size_t>(issue.limit));
        break;
      case Issue::Kind::type:
        errors.type_invalid(at, issue.value, issue.message);
        break;
      case Issue::Kind::invalid:
        if (issue.value.kind() == json::Kind::number) {
          errors.add(
              Fault::invalid, at,
              cat("Invalid value: ", json::go_float(issue.value.as_double()), ": ", issue.message));
        } else {
          errors.invalid(at, issue.value, issue.message);
        }
        break;
    }
  }
}

}  // namespace

void validate_value(const Value& value, const Schema& schema, const Path& path,
                    FieldErrors& errors) {
  report(Validator().part(schema, value, Trail(), nullptr), path, errors);
}

void validate_changed_value(const Value& value, const Value& old, const Schema& schema,
                            const Path& path, FieldErrors& errors) {
  const OldPart part(schema, value, old);
  report(Validator().part(schema, value, Trail(), &part), path, errors);
}

}  // namespace dibs::api
