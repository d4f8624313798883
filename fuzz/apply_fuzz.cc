// Any JSON object as what a manager applies to a pod that another one made: it is refused or
// merged, who owns what can be read back, and applying the same once more changes nothing.
#include "api/merge/apply.h"

#include "fuzz/pod.h"

namespace dibs::fuzz {
namespace {

api::FieldWriter writer(std::string_view manager, std::int64_t seconds) {
  api::FieldWriter out;
  out.schema = &pod_schema();
  out.api_version = "v1";
  out.kind = "Pod";
  out.manager = manager;
  out.now = Time::from_seconds(seconds);
  return out;
}

Result<json::Value> in_normal_form(const json::Value& object) {
  std::vector<std::string> strict;
  return api::decode(object, pod_schema(), api::Strictness::ignore, strict);
}

void check_owners(const json::Value& object) {
  const auto managers = api::Managers::decode(object["metadata"]["managedFields"]);
  require(managers.ok(), "what is recorded can be read");
}

}  // namespace

int fuzz_apply(const std::uint8_t* data, std::size_t size) {
  const auto parsed = json::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok() || !parsed->is_object()) return 0;
  json::Value config = *parsed;
  config.set("apiVersion", "v1");
  config.set("kind", "Pod");
  static const json::Value live = api::track_update(writer("maker", 1), nullptr, pod());
  static const std::string before = json::write(live);

  for (const bool force : {false, true}) {
    const auto applied = api::apply(writer("m", 2), &live, config, force);
    require(json::write(live) == before, "an apply leaves the live object as it was");
    if (!applied.ok()) {
      require(!applied.error().message().empty(), "an error has a message");
      continue;
    }
    check_owners(applied->object);
    const auto stored = in_normal_form(applied->object);
    if (!stored.ok()) continue;
    const auto again = api::apply(writer("m", 3), &*stored, config, false);
    require(again.ok(), "what was applied can be applied again");
    check_owners(again->object);
    const auto second = in_normal_form(again->object);
    require(second.ok(), "the same is accepted again");
    require(json::write((*second)["spec"]) == json::write((*stored)["spec"]),
            "applying the same again changes nothing");
  }

  const auto created = api::apply(writer("m", 2), nullptr, config, false);
  if (created.ok()) check_owners(created->object);
  const auto updated = in_normal_form(config);
  if (updated.ok()) check_owners(api::track_update(writer("u", 4), &live, *updated));
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_apply)
