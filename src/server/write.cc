#include "server/write.h"

#include <charconv>

#include "base/strings.h"
#include "server/custom_kinds.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

Operation operation_of(Verb verb) {
  switch (verb) {
    case Verb::create:
      return Operation::create;
    case Verb::remove:
      return Operation::remove;
    default:
      return Operation::update;
  }
}

}  // namespace

Write::Write(Context& context, const Resource& resource, Verb verb)
    : context(context),
      resource(resource),
      verb(verb),
      name_space(context.info.name_space),
      name(context.info.name),
      subresource(operation_of(verb) == Operation::update ? context.info.subresource : ""),
      operation(operation_of(verb)) {}

void Write::begin() {
  if (!warned_) warned_ = context.warnings.size();
  context.warnings.resize(*warned_);
  tickets.clear();
  op.reset();
  fences.clear();
  outcome = {};
  operation = operation_of(verb);
  old = {};
  moves = false;
  object = {};
  second_round = false;
  wants_second_round = false;
  asked_policies = {};
  asked_webhooks = {};
  refused_for_now_ = false;
}

Error Write::not_yet(Error refusal) {
  refused_for_now_ = true;
  return refusal;
}

Result<store::Op> Write::storing(const Value& what, store::Revision expected) const {
  Value stored = what;
  if (resource.conversion) {
    DIBS_TRY(auto converted,
             convert_custom(*resource.custom_kind, resource.storage_version, {what}));
    stored = std::move(converted.front());
  }
  store::Op out = stored_op(key(), stored, expected);
  out.lifetime = resource.rules->lifetime;
  return out;
}

std::vector<store::Op> Write::transaction() const {
  std::vector<store::Op> ops{*op};
  ops.insert(ops.end(), fences.begin(), fences.end());
  return ops;
}

Value Write::written() const {
  Value out = outcome.object;
  if (outcome.version != 0) out.mut("metadata").set("resourceVersion", cat(outcome.version));
  return out;
}

std::string version_fault(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc::result_out_of_range) {
    return cat("strconv.ParseUint: parsing ", quoted(text), ": value out of range");
  }
  if (code != std::errc() || end != text.data() + text.size()) {
    return cat("strconv.ParseUint: parsing ", quoted(text), ": invalid syntax");
  }
  return {};
}

}  // namespace dibs::server
