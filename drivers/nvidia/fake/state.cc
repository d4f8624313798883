#include "drivers/nvidia/fake/state.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/strings.h"
#include "drivers/nvidia/fake/fields.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia::fake {
namespace {

json::Value placed(unsigned id, unsigned profile, nvml::abi::Placement placement,
                   std::uint64_t serial) {
  return json::Value::object({{"id", id},
                              {"profile", profile},
                              {"start", placement.start},
                              {"size", placement.size},
                              {"serial", serial}});
}

template <typename Instance>
Instance read_placed(Fields& fields) {
  Instance instance;
  instance.id = static_cast<unsigned>(fields.number("id"));
  instance.profile = static_cast<unsigned>(fields.number("profile"));
  instance.placement = {static_cast<unsigned>(fields.number("start")),
                        static_cast<unsigned>(fields.number("size"))};
  instance.serial = fields.number("serial");
  return instance;
}

GpuState read_gpu(Fields& fields) {
  GpuState gpu;
  gpu.mig = fields.boolean("mig", false);
  gpu.mig_pending = fields.boolean("migPending", gpu.mig);
  gpu.compute_mode = static_cast<int>(fields.number("computeMode", 0));
  for (Fields& item : fields.list("instances")) {
    auto instance = read_placed<GpuInstance>(item);
    for (Fields& inside : item.list("compute")) {
      instance.compute.push_back(read_placed<ComputeInstance>(inside));
    }
    gpu.instances.push_back(std::move(instance));
  }
  return gpu;
}

}  // namespace

State fresh_state(const Machine& machine) {
  State state;
  for (const Gpu& gpu : machine.gpus)
    state.gpus.push_back({gpu.mig_enabled, gpu.mig_enabled, 0, {}});
  return state;
}

Result<State> parse_state(const Machine& machine, std::string_view text, std::string_view name) {
  DIBS_TRY(Document document, Document::parse(text, name));
  Fields fields(document, document.root(), "");
  State state = fresh_state(machine);
  state.last_serial = fields.number("lastSerial", 0);
  state.root = fields.text("root", "");
  auto gpus = fields.map("gpus");
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const auto found = gpus.find(machine.gpus[i].uuid);
    if (found != gpus.end()) state.gpus[i] = read_gpu(found->second);
  }
  for (const json::Member& member : document.root()["met"].members()) {
    state.met[std::string(member.key())] = static_cast<std::uint64_t>(member.value().as_int());
  }
  DIBS_CHECK(document.verdict());
  return state;
}

std::string write_state(const Machine& machine, const State& state) {
  json::Value gpus = json::Value::object();
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const GpuState& gpu = state.gpus[i];
    json::Value instances = json::Value::array();
    for (const GpuInstance& instance : gpu.instances) {
      json::Value item = placed(instance.id, instance.profile, instance.placement, instance.serial);
      json::Value compute = json::Value::array();
      for (const ComputeInstance& inside : instance.compute) {
        compute.push(placed(inside.id, inside.profile, inside.placement, inside.serial));
      }
      item.set("compute", std::move(compute));
      instances.push(std::move(item));
    }
    gpus.set(machine.gpus[i].uuid, json::Value::object({{"mig", gpu.mig},
                                                        {"migPending", gpu.mig_pending},
                                                        {"computeMode", gpu.compute_mode},
                                                        {"instances", std::move(instances)}}));
  }
  json::Value met = json::Value::object();
  for (const auto& [fault, count] : state.met) met.set(fault, count);
  return json::write_pretty(json::Value::object({{"lastSerial", state.last_serial},
                                                 {"root", state.root},
                                                 {"gpus", std::move(gpus)},
                                                 {"met", std::move(met)}})) +
         "\n";
}

std::string mig_uuid(const Gpu& gpu, const GpuInstance& instance, const ComputeInstance& compute) {
  std::string digits =
      sha256_hex(cat(gpu.uuid, "/", instance.id, "/", instance.profile, "/", compute.id, "/",
                     compute.placement.start, "/", compute.placement.size))
          .substr(0, 32);
  digits[12] = '5';  // a UUID that is made of a name
  digits[16] = 'a';
  return cat("MIG-", digits.substr(0, 8), "-", digits.substr(8, 4), "-", digits.substr(12, 4), "-",
             digits.substr(16, 4), "-", digits.substr(20));
}

}  // namespace dibs::drivers::nvidia::fake
