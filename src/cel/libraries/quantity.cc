#include "cel/libraries/quantity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"

namespace dibs::cel {

namespace {

/// Go's Quantity has two forms, and only the compact one (an int64 and a scale) ever converts to an
/// integer; the scale then says whether it does.
struct Form {
  bool compact = false;
  int scale = 0;
};

Form form_of(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  while (!text.empty() && text[0] == '0') text.remove_prefix(1);
  const std::size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(fraction);
  }
  const int digits = static_cast<int>(whole + fraction);
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "num kMGTPE";
  Form form;
  if (text.size() == 2 && text[1] == 'i') {
    const int exponent = 10 * (static_cast<int>(kBinary.find(text[0])) + 1);
    form.compact = fraction == 0 && 15 - digits - exponent * 3 / 10 - 1 >= 0;
    return form;
  }
  if (text.size() == 1) {
    form.scale = 3 * (static_cast<int>(kDecimal.find(text[0])) - 3);
  } else if (text.size() > 1) {
    const std::string exponent(text.substr(text[1] == '+' ? 2 : 1));
    form.scale = exponent.size() > 8 ? 1 << 20 : std::atoi(exponent.c_str());
  }
  form.scale -= static_cast<int>(fraction);
  form.compact = digits <= 18 && form.scale >= -9;
  return form;
}

class QuantityValue final : public Opaque {
 public:
  QuantityValue(Quantity amount, Form form, bool derived)
      : amount(std::move(amount)), form(form), derived(derived) {}
  std::string_view type_name() const override { return "kubernetes.Quantity"; }
  bool equals(const Opaque& other) const override {
    return amount == static_cast<const QuantityValue&>(other).amount;
  }
  /// A sum or difference is of another Go type, which the comparison does not know on its right.
  bool comparable_with(const Opaque& other) const override {
    return !static_cast<const QuantityValue&>(other).derived;
  }
  bool identify(std::string& out) const override {
    append(out, amount.str(), form.compact ? "c" : "d", form.scale, derived ? "+" : "");
    return true;
  }
  const Quantity amount;
  const Form form;
  const bool derived;
};

const QuantityValue& self(const Value& value) {
  return static_cast<const QuantityValue&>(value.as_opaque());
}

Value quantity(const Value* arguments, std::size_t) { return quantity_value(arguments[0].text()); }
Value is_quantity(const Value* arguments, std::size_t) {
  return Value::boolean(Quantity::parse(arguments[0].text()).ok());
}
Value sign(const Value* arguments, std::size_t) {
  return Value::integer(self(arguments[0]).amount.sign());
}
int compared(const Value* arguments) {
  return self(arguments[0]).amount.compare(self(arguments[1]).amount);
}
Value is_greater(const Value* arguments, std::size_t) {
  return Value::boolean(compared(arguments) > 0);
}
Value is_less(const Value* arguments, std::size_t) {
  return Value::boolean(compared(arguments) < 0);
}
Value compare_to(const Value* arguments, std::size_t) {
  return Value::integer(compared(arguments));
}
Value approximate(const Value* arguments, std::size_t) {
  const QuantityValue& of = self(arguments[0]);
  if (!of.derived || !of.form.compact) return Value::real(of.amount.approximate());
  // The scale decides how it rounds.
  return Value::real(static_cast<double>(of.amount.scaled_value(of.form.scale)) *
                     std::pow(10.0, of.form.scale));
}

bool integer_of(const QuantityValue& value, std::int64_t& out) {
  if (!value.form.compact || value.form.scale < 0) return false;
  const std::optional<std::int64_t> exact = value.amount.exact();
  if (exact) out = *exact;
  return exact.has_value();
}
Value as_integer(const Value* arguments, std::size_t) {
  std::int64_t number;
  if (integer_of(self(arguments[0]), number)) return Value::integer(number);
  return Value::error("cannot convert value to integer");
}
Value is_integer(const Value* arguments, std::size_t) {
  std::int64_t unused;
  return Value::boolean(integer_of(self(arguments[0]), unused));
}

template <bool Adds>
Value combined(const Value* arguments, std::size_t) {
  const QuantityValue& left = self(arguments[0]);
  Quantity amount = left.amount;
  Quantity other;
  Form form{true, 0};
  if (arguments[1].is(Kind::integer)) {
    other = Quantity(arguments[1].as_integer());
  } else {
    other = self(arguments[1]).amount;
    form = self(arguments[1]).form;
  }
  if (Adds)
    amount.add(other);
  else
    amount.subtract(other);
  if (left.amount.is_zero()) {
    form.compact = form.compact && left.form.compact;
  } else if (other.is_zero()) {
    form = {form.compact && left.form.compact, left.form.scale};
  } else {
    form = {form.compact && left.form.compact, std::min(form.scale, left.form.scale)};
  }
  // What no longer fits an int64 leaves the compact form.
  if (form.compact && Quantity(amount.scaled_value(form.scale), form.scale) != amount)
    form.compact = false;
  return Value::opaque(new QuantityValue(std::move(amount), form, true));
}

class SemverValue final : public Opaque {
 public:
  explicit SemverValue(SemanticVersion version) : version(std::move(version)) {}
  std::string_view type_name() const override { return "kubernetes.Semver"; }
  bool equals(const Opaque& other) const override {
    return version == static_cast<const SemverValue&>(other).version;
  }
  bool identify(std::string& out) const override {
    out += version.str();
    return true;
  }
  const SemanticVersion version;
};

Result<SemanticVersion> read_semver(const Value* arguments, std::size_t count) {
  if (count > 1 && arguments[1].as_boolean())
    return SemanticVersion::parse_tolerant(arguments[0].text());
  return SemanticVersion::parse(arguments[0].text());
}
Value semver(const Value* arguments, std::size_t count) {
  Result<SemanticVersion> parsed = read_semver(arguments, count);
  if (!parsed.ok()) {
    std::string message = parsed.error().message();
    if (message.starts_with("Short version")) message[0] = 's';
    return Value::error(std::move(message));
  }
  return semver_value(std::move(*parsed));
}
Value is_semver(const Value* arguments, std::size_t count) {
  return Value::boolean(read_semver(arguments, count).ok());
}
template <std::uint64_t SemanticVersion::*Part>
Value semver_part(const Value* arguments, std::size_t) {
  return Value::integer(static_cast<std::int64_t>(semver_of(arguments[0]).*Part));
}
int semver_compared(const Value* arguments) {
  return semver_of(arguments[0]).compare(semver_of(arguments[1]));
}
Value semver_greater(const Value* arguments, std::size_t) {
  return Value::boolean(semver_compared(arguments) > 0);
}
Value semver_less(const Value* arguments, std::size_t) {
  return Value::boolean(semver_compared(arguments) < 0);
}
Value semver_compare(const Value* arguments, std::size_t) {
  return Value::integer(semver_compared(arguments));
}

}  // namespace

Value quantity_value(std::string_view text) {
  Result<Quantity> parsed = Quantity::parse(text);
  if (!parsed.ok()) return Value::error(parsed.error().message());
  return Value::opaque(new QuantityValue(std::move(*parsed), form_of(text), false));
}

const Quantity& quantity_of(const Value& value) { return self(value).amount; }

Value semver_value(SemanticVersion version) {
  return Value::opaque(new SemverValue(std::move(version)));
}

const SemanticVersion& semver_of(const Value& value) {
  return static_cast<const SemverValue&>(value.as_opaque()).version;
}

void add_quantity(Environment& environment) {
  environment.function("quantity", {{"string -> kubernetes.Quantity", quantity, cost_scan_first}});
  environment.function("isQuantity", {{"string -> bool", is_quantity, cost_scan_first}});
  environment.function("sign", {{"kubernetes.Quantity -> int", sign}});
  environment.function("isGreaterThan",
                       {{".kubernetes.Quantity, kubernetes.Quantity -> bool", is_greater}});
  environment.function("isLessThan",
                       {{".kubernetes.Quantity, kubernetes.Quantity -> bool", is_less}});
  environment.function("compareTo",
                       {{".kubernetes.Quantity, kubernetes.Quantity -> int", compare_to}});
  environment.function("asApproximateFloat", {{".kubernetes.Quantity -> double", approximate}});
  environment.function("asInteger", {{".kubernetes.Quantity -> int", as_integer}});
  environment.function("isInteger", {{".kubernetes.Quantity -> bool", is_integer}});
  environment.function(
      "add", {{".kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity", combined<true>},
              {".kubernetes.Quantity, int -> kubernetes.Quantity", combined<true>}});
  environment.function(
      "sub", {{".kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity", combined<false>},
              {".kubernetes.Quantity, int -> kubernetes.Quantity", combined<false>}});
}

void add_semver(Environment& environment, int version) {
  environment.function("semver", {{"string -> kubernetes.Semver", semver, cost_scan_first}});
  environment.function("isSemver", {{"string -> bool", is_semver, cost_scan_first}});
  if (version >= 1) {
    environment.function("semver",
                         {{"string, bool -> kubernetes.Semver", semver, cost_scan_first}});
    environment.function("isSemver", {{"string, bool -> bool", is_semver, cost_scan_first}});
  }
  environment.function("major",
                       {{".kubernetes.Semver -> int", semver_part<&SemanticVersion::major>}});
  environment.function("minor",
                       {{".kubernetes.Semver -> int", semver_part<&SemanticVersion::minor>}});
  environment.function("patch",
                       {{".kubernetes.Semver -> int", semver_part<&SemanticVersion::patch>}});
  environment.function("isGreaterThan",
                       {{".kubernetes.Semver, kubernetes.Semver -> bool", semver_greater}});
  environment.function("isLessThan",
                       {{".kubernetes.Semver, kubernetes.Semver -> bool", semver_less}});
  environment.function("compareTo",
                       {{".kubernetes.Semver, kubernetes.Semver -> int", semver_compare}});
}

}  // namespace dibs::cel
