#include "drivers/nvidia/fake/machine.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"
#include "drivers/nvidia/fake/fields.h"

namespace dibs::drivers::nvidia::fake {
namespace {

namespace abi = nvml::abi;

/// By NVML's number.
const std::vector<std::string>& brands() {
  static const std::vector<std::string> words = {
      "Unknown",   "Quadro",      "Tesla",     "NVS",       "Grid",      "GeForce",
      "Titan",     "NvidiaVApps", "NvidiaVPC", "NvidiaVCS", "NvidiaVWS", "NvidiaCloudGaming",
      "QuadroRTX", "NvidiaRTX",   "Nvidia"};
  return words;
}

const std::vector<std::string>& architectures() {
  static const std::vector<std::string> words = {
      "",       "",       "Kepler",       "Maxwell", "Pascal",   "Volta",
      "Turing", "Ampere", "Ada Lovelace", "Hopper",  "Blackwell"};
  return words;
}

/// "9.0" as two numbers.
bool two_numbers(std::string_view text, int& first, int& second) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const auto whole = [](std::string_view part, int& into) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), into);
    return error == std::errc() && end == part.data() + part.size() && !part.empty() && into >= 0;
  };
  return whole(text.substr(0, dot), first) && whole(text.substr(dot + 1), second);
}

/// "0000:19:00.0"
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

Profile read_profile(Fields fields, const Model& model) {
  Profile profile;
  profile.name = fields.text("name");
  profile.id = static_cast<unsigned>(fields.number("id"));
  profile.index =
      static_cast<unsigned>(fields.number("index", std::nullopt, abi::kGpuInstanceProfiles - 1));
  profile.slices = static_cast<unsigned>(fields.number("slices", std::nullopt, model.slices));
  profile.instances = static_cast<unsigned>(fields.number("instances"));
  profile.multiprocessors = static_cast<unsigned>(fields.number("multiprocessors"));
  profile.copy_engines = static_cast<unsigned>(fields.number("copyEngines", 0));
  profile.decoders = static_cast<unsigned>(fields.number("decoders", 0));
  profile.encoders = static_cast<unsigned>(fields.number("encoders", 0));
  profile.jpeg = static_cast<unsigned>(fields.number("jpeg", 0));
  profile.ofa = static_cast<unsigned>(fields.number("ofa", 0));
  profile.memory = fields.bytes("memory");
  const auto size = static_cast<unsigned>(fields.number("memorySlices", std::nullopt, 64));
  for (const std::uint64_t start : fields.numbers("starts")) {
    if (start + size > model.memory_slices) {
      fields.complain("starts", cat(start, " and ", size, " memory slices are more than the GPU's ",
                                    model.memory_slices));
    }
    profile.placements.push_back({static_cast<unsigned>(start), size});
  }
  if (profile.slices == 0) fields.complain("slices", "at least 1");
  if (size == 0) fields.complain("memorySlices", "at least 1");
  fields.no_others();
  return profile;
}

void read_mig(Fields fields, Model& model) {
  model.mig = true;
  model.slices = static_cast<unsigned>(fields.number("slices", std::nullopt, 64));
  model.memory_slices = static_cast<unsigned>(fields.number("memorySlices", std::nullopt, 64));
  model.mode_needs_reset = fields.boolean("modeNeedsReset", false);
  model.queries_need_mode = fields.boolean("queriesNeedMode", false);
  std::set<unsigned> ids;
  std::set<unsigned> indices;
  for (Fields& profile : fields.list("profiles")) {
    model.profiles.push_back(read_profile(profile, model));
    if (!ids.insert(model.profiles.back().id).second) profile.complain("id", "is there twice");
    if (!indices.insert(model.profiles.back().index).second) {
      profile.complain("index", "is there twice");
    }
  }
  fields.no_others();
}

Model read_model(Fields fields) {
  Model model;
  model.name = fields.text("name");
  model.brand = static_cast<int>(fields.choice("brand", brands()));
  model.architecture = fields.choice("architecture", architectures());
  if (!two_numbers(fields.text("computeCapability"), model.compute_major, model.compute_minor)) {
    fields.complain("computeCapability", "two numbers in quotes are needed, as \"9.0\"");
  }
  model.pci_device = static_cast<unsigned>(fields.number("pciDevice", 0));
  model.memory = fields.bytes("memory");
  model.reserved = fields.bytes("reserved", 0);
  if (model.reserved > model.memory) fields.complain("reserved", "more than there is");
  model.addressing_mode =
      static_cast<int>(fields.choice("addressingMode", {"", "None", "HMM", "ATS"}, 0)) - 1;
  model.ecc = fields.boolean("ecc", false);
  model.row_remapping = fields.boolean("rowRemapping", false);
  for (const std::string& event : fields.texts("events")) {
    if (event == "xid") {
      model.events |= abi::kEventXid;
    } else if (event == "singleBitEcc") {
      model.events |= abi::kEventSingleBitEcc;
    } else if (event == "doubleBitEcc") {
      model.events |= abi::kEventDoubleBitEcc;
    } else {
      fields.complain("events", cat(quoted(event), " is none of xid, singleBitEcc, doubleBitEcc"));
    }
  }
  if (auto mig = fields.object("mig")) read_mig(*mig, model);
  fields.no_others();
  return model;
}

Links read_links(Fields fields) {
  Links links;
  links.count = static_cast<unsigned>(fields.number("count", std::nullopt, abi::kMaxLinks));
  links.version = static_cast<unsigned>(fields.number("version"));
  links.kind = fields.choice("to", {"gpu", "switch"}) == 0 ? abi::kLinkToGpu : abi::kLinkToSwitch;
  links.remotes = fields.texts("remotes");
  for (const std::string& remote : links.remotes) {
    if (!is_pci_address(remote))
      fields.complain("remotes", cat(quoted(remote), " is no PCI address"));
  }
  fields.no_others();
  return links;
}

Gpu read_gpu(Fields fields, std::size_t index, const std::vector<std::string>& models,
             const Machine& machine) {
  Gpu gpu;
  gpu.model = fields.choice("model", models);
  gpu.uuid = fields.text("uuid");
  if (!gpu.uuid.starts_with("GPU-")) fields.complain("uuid", "begins with GPU-");
  gpu.minor = static_cast<unsigned>(fields.number("minor", index));
  gpu.pci = fields.text("pci");
  if (!is_pci_address(gpu.pci)) {
    fields.complain("pci", "an address as 0000:19:00.0 is needed, in small letters");
  }
  gpu.pcie_root = fields.text("pcieRoot", "");
  if (fields.has("numaNode")) gpu.numa_node = static_cast<int>(fields.number("numaNode", 0, 1023));
  gpu.mig_enabled = fields.boolean("migEnabled", false);
  if (gpu.mig_enabled && !machine.models[gpu.model].mig) {
    fields.complain("migEnabled", "the model knows no MIG");
  }
  if (auto links = fields.object("nvlinks")) gpu.links = read_links(*links);
  for (const Gpu& other : machine.gpus) {
    if (other.uuid == gpu.uuid) fields.complain("uuid", "another GPU has it");
    if (other.minor == gpu.minor) fields.complain("minor", "another GPU has it");
    if (other.pci == gpu.pci) fields.complain("pci", "another GPU has it");
  }
  fields.no_others();
  return gpu;
}

}  // namespace

Result<Machine> parse_machine(std::string_view text, std::string_view name) {
  DIBS_TRY(Document document, Document::parse(text, name));
  Fields fields(document, document.root(), "");
  Machine machine;
  machine.driver = fields.text("driver");
  int major = 0;
  int minor = 0;
  if (!two_numbers(fields.text("cuda"), major, minor)) {
    fields.complain("cuda", "two numbers in quotes are needed, as \"13.0\"");
  }
  machine.cuda = major * 1000 + minor * 10;
  std::vector<std::string> models;
  for (auto& [key, model] : fields.map("models")) {
    machine.models.push_back(read_model(model));
    models.push_back(key);
  }
  if (models.empty()) {
    fields.complain("models", "at least one is needed");
  } else {
    for (const Fields& gpu : fields.list("gpus")) {
      machine.gpus.push_back(read_gpu(gpu, machine.gpus.size(), models, machine));
    }
  }
  fields.no_others();
  DIBS_CHECK(document.verdict());
  return machine;
}

const Gpu* find_gpu(const Machine& machine, std::string_view what) {
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].uuid == what || std::to_string(i) == what) return &machine.gpus[i];
  }
  return nullptr;
}

}  // namespace dibs::drivers::nvidia::fake
