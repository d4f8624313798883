// Two quantities, the second after a blank: what is written reads back as the same amount, and sums
// and differences undo each other.
#include "base/quantity.h"

#include "fuzz/targets.h"

namespace dibs::fuzz {

int fuzz_quantity(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t blank = text.find(' ');
  const auto first = Quantity::parse(text.substr(0, blank));
  if (!first.ok()) {
    require(!first.error().message().empty(), "an error has a message");
    return 0;
  }
  const std::string canonical = first->canonical();
  for (const std::string& form : {first->str(), canonical}) {
    const auto back = Quantity::parse(form);
    require(back.ok() && *back == *first, "what is written reads back as the same amount");
    // 687.5Ki is written 704000, which reads as a decimal amount.
    require(back->format() != first->format() || back->canonical() == canonical,
            "an amount has one canonical form per format");
  }
  (void)first->value();
  (void)first->milli_value();
  (void)first->approximate();
  Quantity negated = *first;
  negated.negate();
  require(negated.sign() == -first->sign(), "negation turns the sign");

  if (blank == std::string_view::npos) return 0;
  const auto second = Quantity::parse(text.substr(blank + 1));
  if (!second.ok()) return 0;
  require(first->compare(*second) == -second->compare(*first), "amounts are ordered");
  Quantity sum = *first;
  sum.add(*second);
  Quantity other = *second;
  other.add(*first);
  require(sum == other, "the order of a sum does not matter");
  const auto back = Quantity::parse(sum.canonical());
  require(back.ok(), "a sum can be written and read back");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_quantity)
