#include "drivers/net/model/reserved_ip.h"

#include "base/strings.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

Result<int> version_of(const json::Value& spec, const std::vector<std::string>& ips) {
  const api::Path path("spec");
  api::FieldErrors errors;
  const json::Value& given = spec["ipVersion"];
  if (given.is_integer() && (given.as_int() == 4 || given.as_int() == 6)) {
    return static_cast<int>(given.as_int());
  }
  if (!given.is_null()) {
    errors.not_supported(path.child("ipVersion"), given, {"4", "6"});
    return first_fault(errors);
  }
  const auto first = ips.empty() ? Result<IpRange>(Error::invalid("")) : IpRange::parse(ips[0]);
  if (first.ok()) return first->first.version();
  errors.invalid(path.child("ipVersion"), given,
                 "is not generated correctly, 'spec.ips' is empty or 'spec.ips[0]' may be invalid");
  return first_fault(errors);
}

}  // namespace

Result<ReservedIp> parse_reserved_ip(const json::Value& object) {
  const json::Value& spec = object["spec"];
  const api::Path path("spec");
  ReservedIp reserved;
  reserved.name = object["metadata"]["name"].str();
  reserved.terminating = is_terminating(object);
  DIBS_TRY(const auto ips, read_texts(spec, "ips", path));
  DIBS_TRY(reserved.version, version_of(spec, ips));
  const api::Path list = path.child("ips");
  for (std::size_t i = 0; i < ips.size(); ++i) {
    const auto range = IpRange::parse(ips[i]);
    if (range.ok() && range->first.version() == reserved.version) {
      reserved.ips.add(*range);
      continue;
    }
    api::FieldErrors errors;
    errors.invalid(list.index(i), ips[i],
                   cat("invalid IP range format in IPv", reserved.version, " '", ips[i], "'"));
    return first_fault(errors);
  }
  return reserved;
}

}  // namespace dibs::drivers::net
