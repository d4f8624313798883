#include "drivers/nvidia/fake/faults.h"

#include "base/strings.h"
#include "drivers/nvidia/fake/fields.h"
#include "drivers/nvidia/nvml/library.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia::fake {
namespace {

namespace abi = nvml::abi;

/// Codes end here but for unknown (999).
constexpr int kLastCode = 30;

std::size_t gpu_of(const Machine& machine, Fields& fields, std::string_view field,
                   std::string_view what) {
  const Gpu* gpu = find_gpu(machine, what);
  if (gpu != nullptr) return static_cast<std::size_t>(gpu - machine.gpus.data());
  fields.complain(field, cat("the machine has no GPU ", quoted(what)));
  return 0;
}

/// The field "gpu" of an entry: an index or an uuid.
std::size_t own_gpu(const Machine& machine, Fields& fields) {
  fields.has("gpu");
  const json::Value& value = fields.value()["gpu"];
  return gpu_of(machine, fields, "gpu",
                value.is_integer() ? std::to_string(value.as_int()) : value.str());
}

EventFault read_event(const Machine& machine, Fields fields) {
  EventFault event;
  event.text = json::write(fields.value());
  event.gpu = own_gpu(machine, fields);
  if (fields.has("xid")) {
    event.type = abi::kEventXid;
    event.data = fields.number("xid");
  } else if (fields.boolean("doubleBitEcc", false)) {
    event.type = abi::kEventDoubleBitEcc;
  } else if (fields.boolean("singleBitEcc", false)) {
    event.type = abi::kEventSingleBitEcc;
  } else {
    event.type = fields.number("type");
    event.data = fields.number("data", 0);
  }
  event.gpu_instance = static_cast<unsigned>(fields.number("gpuInstance", abi::kNoInstanceId));
  event.compute_instance =
      static_cast<unsigned>(fields.number("computeInstance", abi::kNoInstanceId));
  fields.has("id");  // only makes the entry another one
  fields.no_others();
  return event;
}

CallFault read_call(const Machine& machine, Fields fields) {
  CallFault call;
  call.text = json::write(fields.value());
  call.function = fields.text("call");
  if (!call.function.starts_with("nvml"))
    fields.complain("call", "the name of a function of NVML is needed");
  if (fields.has("gpu")) call.gpu = own_gpu(machine, fields);
  if (fields.has("code")) {
    const json::Value& value = fields.value()["code"];
    const auto code = parse_code(value.is_integer() ? std::to_string(value.as_int()) : value.str());
    if (!code) fields.complain("code", "a code of NVML is needed, as in_use");
    call.code = code.value_or(0);
  }
  if (fields.has("takes")) {
    const auto takes = parse_duration(fields.text("takes"));
    if (!takes.ok()) fields.complain("takes", "a duration is needed, as 200ms");
    if (takes.ok()) call.takes = *takes;
  }
  call.kill = static_cast<Kill>(fields.choice("kill", {"", "before", "after"}, 0));
  call.after = fields.number("after", 0);
  call.times = fields.number("times", 0);
  fields.has("id");
  fields.no_others();
  return call;
}

void read_gpu(Fields fields, GpuFaults& faults) {
  fields.has("gpu");
  faults.lost = fields.boolean("lost", false);
  faults.gone = fields.boolean("gone", false);
  faults.busy = fields.boolean("busy", false);
  if (auto rows = fields.object("rows")) {
    faults.correctable_rows = static_cast<unsigned>(rows->number("correctable", 0));
    faults.uncorrectable_rows = static_cast<unsigned>(rows->number("uncorrectable", 0));
    faults.row_pending = rows->boolean("pending", false);
    faults.row_failed = rows->boolean("failed", false);
    rows->no_others();
  }
  if (auto ecc = fields.object("ecc")) {
    faults.corrected = ecc->number("corrected", 0);
    faults.uncorrected = ecc->number("uncorrected", 0);
    ecc->no_others();
  }
  faults.links_down = static_cast<unsigned>(fields.number("linksDown", 0));
  faults.gpu_percent = static_cast<unsigned>(fields.number("gpuPercent", 0, 100));
  faults.memory_percent = static_cast<unsigned>(fields.number("memoryPercent", 0, 100));
  faults.memory_used = fields.bytes("memoryUsed", 0);
  fields.no_others();
}

}  // namespace

std::optional<abi::Return> parse_code(std::string_view text) {
  for (int number = 0; number <= 999; number = number == kLastCode ? 999 : number + 1) {
    const std::string_view name = nvml::name_of(static_cast<nvml::Code>(number));
    const std::string_view brief = name.substr(name.starts_with("NVML_ERROR_") ? 11 : 5);
    if (text == name || to_upper(text) == brief || text == std::to_string(number)) return number;
  }
  return std::nullopt;
}

Faults no_faults(const Machine& machine) {
  Faults faults;
  faults.gpus.resize(machine.gpus.size());
  return faults;
}

Result<Faults> parse_faults(const Machine& machine, std::string_view text, std::string_view name) {
  Faults faults = no_faults(machine);
  DIBS_TRY(Document document, Document::parse(text, name));
  if (document.root().is_null()) return faults;
  Fields fields(document, document.root(), "");
  for (Fields& gpu : fields.list("gpus")) read_gpu(gpu, faults.gpus[own_gpu(machine, gpu)]);
  for (Fields& instance : fields.list("instances")) {
    faults.busy_instances[instance.text("uuid")] = instance.bytes("memoryUsed", 0);
    instance.no_others();
  }
  for (const Fields& event : fields.list("events")) {
    faults.events.push_back(read_event(machine, event));
  }
  for (const Fields& call : fields.list("calls")) faults.calls.push_back(read_call(machine, call));
  fields.no_others();
  DIBS_CHECK(document.verdict());
  return faults;
}

}  // namespace dibs::drivers::nvidia::fake
