#include "drivers/net/model/claim_parameter.h"

#include <array>

#include "base/names.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "drivers/net/model/field_reader.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// The document says the first, released programs read the second.
constexpr std::array<std::string_view, 2> kCdiVersion = {"dra.spidernet.io/cdi-version",
                                                         "ipam.spidernet.io/cdi-version"};
constexpr std::array<std::string_view, 6> kCdiVersions = {"0.1.0", "0.2.0", "0.3.0",
                                                          "0.4.0", "0.5.0", "0.6.0"};

void check_nic(const FieldReader& in, std::string_view name_key, const NicName& nic) {
  if (nic.name.empty()) {
    in.fail(name_key, "Invalid value: \"\": value should not be empty");
  } else if (!is_dns1123_subdomain(nic.name).empty()) {
    in.fail(name_key,
            cat("Invalid value: ", quoted(nic.name), ": no name of a SpiderMultusConfig"));
  }
  if (!is_dns1123_label(nic.name_space).empty()) {
    in.fail("namespace",
            cat("Invalid value: ", quoted(nic.name_space), ": no name of a namespace"));
  }
}

NicName read_nic(const FieldReader& in, std::string_view name_key) {
  NicName nic{in.text("namespace"), in.text(name_key), in.flag("defaultRoute")};
  check_nic(in, name_key, nic);
  return nic;
}

/// "[namespace/]name".
NicName read_name(const FieldReader& spec, std::size_t index, const std::string& text,
                  const std::string& name_space) {
  const auto slash = text.find('/');
  NicName nic;
  nic.name_space = slash == std::string::npos ? name_space : text.substr(0, slash);
  nic.name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (!is_dns1123_subdomain(nic.name).empty() || !is_dns1123_label(nic.name_space).empty()) {
    spec.fail(cat("multusNames[", index, "]"),
              cat("Invalid value: ", quoted(text), ": must be [namespace/]name"));
  }
  return nic;
}

void read_nics(const FieldReader& spec, const std::string& name_space, ClaimParameter& out) {
  // An empty one is the cluster's default network.
  if (spec.has("defaultNic") && spec.in("defaultNic").has("multusName")) {
    out.default_nic = read_nic(spec.in("defaultNic"), "multusName");
  }
  int lists = 0;
  for (const char* key : {"secondaryNics", "staticNics", "multusNames"}) {
    if (spec.list(key).size() != 0) ++lists;
  }
  if (lists > 1) {
    spec.fail("", "only one of secondaryNics, staticNics and multusNames may be given");
  }
  for (std::size_t i = 0; i < spec.list("secondaryNics").size(); ++i) {
    out.secondary_nics.push_back(read_nic(spec.item("secondaryNics", i), "multusName"));
  }
  for (std::size_t i = 0; i < spec.list("staticNics").size(); ++i) {
    out.secondary_nics.push_back(read_nic(spec.item("staticNics", i), "multusConfigName"));
  }
  const auto names = spec.texts("multusNames");
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.secondary_nics.push_back(read_name(spec, i, names[i], name_space));
  }
}

void read_resources(const FieldReader& spec, const Value& map, std::string_view key,
                    ClaimParameter& out) {
  if (!map.is_object() && !map.is_null()) spec.fail(key, "must be an object");
  for (const auto& [name, value] : map.members()) {
    const std::string field = cat(key, "[", name, "]");
    const std::string text = value.is_integer() ? cat(value.as_int()) : value.str();
    const auto amount = Quantity::parse(text);
    const auto exact = amount ? amount->exact() : std::nullopt;
    if (!exact || *exact < 0) {
      spec.fail(field, cat("Invalid value: ", quoted(text), ": must be an integer, 0 or more"));
      continue;
    }
    if (!is_qualified_name(name).empty()) {
      spec.fail(field, cat("Invalid value: ", quoted(name), ": no name of a resource"));
    }
    const auto [there, is_new] = out.resources.emplace(std::string(name), *exact);
    if (!is_new && there->second != *exact) {
      spec.fail(field, "resources and netResources differ");
    }
  }
}

Result<std::string> read_cdi_version(const Value& annotations) {
  for (const auto& key : kCdiVersion) {
    const Value* given = annotations.find(key);
    if (given == nullptr) continue;
    std::string_view version = given->as_string();
    if (version.substr(0, 1) == "v") version.remove_prefix(1);
    for (const auto& known : kCdiVersions) {
      if (known == version) return std::string(version);
    }
    return Error::invalid(cat("metadata.annotations[", key, "]: invalid version ",
                              quoted(given->as_string()), ", must be 0.1.0 to 0.6.0"));
  }
  return std::string(kDefaultCdiVersion);
}

}  // namespace

Result<ClaimParameter> parse_claim_parameter(const Value& object) {
  ClaimParameter out;
  DIBS_TRY(out.cdi_version, read_cdi_version(object["metadata"]["annotations"]));
  std::optional<Error> error;
  const FieldReader spec(object["spec"], "spec", error);
  out.rdma_acc = spec.flag("rdmaAcc") || spec.flag("rdma");
  out.enable_rdma = spec.flag("enableRdma");
  out.ippools = spec.texts("ippools");
  read_nics(spec, object["metadata"]["namespace"].str(), out);
  for (const char* key : {"resources", "netResources"}) {
    read_resources(spec, object["spec"][key], key, out);
  }
  if (error) return *error;
  return out;
}

Result<> check_nics(const ClaimParameter& parameter, const FindConfig& find) {
  std::vector<NicName> nics = parameter.secondary_nics;
  if (parameter.default_nic) nics.insert(nics.begin(), *parameter.default_nic);
  std::string type;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto config = find(nics[i].key());
    if (!config) {
      return Error::not_found(cat("error get spidermultusconfig ", nics[i].key(), ": not found"));
    }
    if (parameter.default_nic && i == 0) continue;
    if (type.empty()) type = config->cni_type;
    if (type != config->cni_type) {
      return Error::invalid(cat("spec.secondaryNics: all must be of one cniType, but ",
                                nics[i].key(), " is ", config->cni_type, " and not ", type));
    }
  }
  return success();
}

std::string warning_of(const ClaimParameter& parameter) {
  // A claim's uid is the name of its CDI device, and ten of sixteen uids begin with a digit.
  if (parameter.cdi_version == "0.5.0" || parameter.cdi_version == "0.6.0") return "";
  return cat("the CDI version ", parameter.cdi_version,
             " knows no devices whose names begin with a digit: claims whose uid does cannot be "
             "prepared, use 0.5.0 or 0.6.0");
}

}  // namespace dibs::drivers::net
