#include "server/service_range.h"

#include "base/ipv4.h"
#include "base/strings.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kKey = "/registry.dibs/service-range";
constexpr std::string_view kApiService = "/registry/services/specs/default/kubernetes";
constexpr const char* kFlag = "--service-cluster-ip-range";

Error differs(const std::string& asked, const std::string& known) {
  return Error::bad_request(cat(kFlag, ' ', quoted(asked), ": this cluster's Services have ", known,
                                " for life; start it with that, or without the flag"));
}

/// Of a store that nobody has noted the range in.
Result<std::string> range_by_service(const store::Store& store, const std::string& asked) {
  const auto record = store.get(kApiService);
  if (!record) return std::string();
  DIBS_TRY(const json::Value service, decode_stored(*record));
  const std::string first = service["spec"]["clusterIP"].str();
  const auto fits = [&](const std::string& range) {
    const auto parsed = parse_service_range(range);
    return parsed.ok() && parsed->address(kApiServiceIndex) == first;
  };
  const std::string range = asked.empty() ? kDefaultServiceRange : asked;
  if (fits(range)) return range;
  return Error::bad_request(cat(kFlag, asked.empty() ? "" : " ", asked.empty() ? "" : quoted(asked),
                                ": must be the range of this cluster's Services, whose first "
                                "address is ",
                                first, " (of the Service kubernetes)"));
}

}  // namespace

Result<std::string> known_service_range(store::Store& store, const std::string& asked) {
  DIBS_CHECK(store.sync());
  const auto record = store.get(kKey);
  if (!record) return range_by_service(store, asked);
  std::string known(*record->value);
  if (!asked.empty() && asked != known) return differs(asked, known);
  return known;
}

Result<> keep_service_range(store::Store& store, const std::string& range) {
  if (const auto record = store.get(kKey); record && *record->value == range) return success();
  store::Op op;
  op.key = kKey;
  op.value = share(range);
  op.expected = 0;
  const auto written = store.commit({std::move(op)});
  if (written.ok()) return success();
  if (written.error().code() != Code::conflict) return written.error();
  DIBS_TRY(const std::string known, known_service_range(store, ""));
  if (known != range) return differs(range, known);
  return success();
}

}  // namespace dibs::server
