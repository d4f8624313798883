// Volumes, claims on them, and the classes and drivers behind them.
#include "api/print/printer.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

constexpr std::string_view kGroup = "storage.k8s.io";
struct AccessMode {
  std::string_view name;
  std::string_view text;
};
constexpr AccessMode kAccessModes[] = {{"ReadWriteOnce", "RWO"},
                                       {"ReadOnlyMany", "ROX"},
                                       {"ReadWriteMany", "RWX"},
                                       {"ReadWriteOncePod", "RWOP"}};

std::string access_modes(const json::Value& modes) {
  std::vector<std::string> pieces;
  for (const AccessMode& known : kAccessModes) {
    for (const json::Value& mode : modes.items()) {
      if (mode.as_string() != known.name) continue;
      pieces.emplace_back(known.text);
      break;
    }
  }
  return join(pieces, ",");
}

std::string quantity(const json::Value& value) {
  auto parsed = Quantity::parse(value.as_string("0"));
  return parsed.ok() ? parsed->str() : value.str();
}

std::string phase(const json::Value& object) {
  if (!object["metadata"]["deletionTimestamp"].is_null()) return "Terminating";
  return object["status"]["phase"].str();
}

std::string storage_class(const json::Value& object) {
  const json::Value& annotation =
      object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  return annotation.is_string() ? annotation.str() : object["spec"]["storageClassName"].str();
}

std::string or_unset(const json::Value& value) {
  return value.is_string() ? value.str() : "<unset>";
}

void print_volume(Row& row) {
  const json::Value& spec = row.object["spec"];
  const json::Value& claim = spec["claimRef"];
  row.name();
  row.add(quantity(spec["capacity"]["storage"]));
  row.add(access_modes(spec["accessModes"]));
  row.add(spec["persistentVolumeReclaimPolicy"].as_string());
  row.add(phase(row.object));
  row.add(claim.is_null() ? std::string()
                          : cat(claim["namespace"].as_string(), '/', claim["name"].as_string()));
  row.add(storage_class(row.object));
  row.add(or_unset(spec["volumeAttributesClassName"]));
  row.add(row.object["status"]["reason"].as_string());
  row.age();
  row.add(or_unset(spec["volumeMode"]));
}

void print_claim(Row& row) {
  const json::Value& spec = row.object["spec"];
  const json::Value& status = row.object["status"];
  bool bound = !spec["volumeName"].as_string().empty();
  row.name();
  row.add(phase(row.object));
  row.add(spec["volumeName"].as_string());
  row.add(bound ? quantity(status["capacity"]["storage"]) : std::string());
  row.add(bound ? access_modes(status["accessModes"]) : std::string());
  row.add(storage_class(row.object));
  row.add(or_unset(spec["volumeAttributesClassName"]));
  row.age();
  row.add(or_unset(spec["volumeMode"]));
}

void print_class(Row& row) {
  const json::Value& storage = row.object;
  row.name();
  row.add(storage["provisioner"].as_string());
  row.add(text_or(storage["reclaimPolicy"], "Delete"));
  row.add(or_unset(storage["volumeBindingMode"]));
  row.add(storage["allowVolumeExpansion"].as_bool());
  row.age();
}

void print_attributes_class(Row& row) {
  row.name();
  row.add(row.object["driverName"].as_string());
  row.age();
}

void print_driver(Row& row) {
  const json::Value& spec = row.object["spec"];
  std::vector<std::string> audiences;
  for (const json::Value& request : spec["tokenRequests"].items()) {
    audiences.push_back(request["audience"].str());
  }
  std::string modes = joined(spec["volumeLifecycleModes"], ",");
  row.name();
  row.add(spec["attachRequired"].as_bool(true));
  row.add(spec["podInfoOnMount"].as_bool());
  row.add(spec["storageCapacity"].as_bool());
  row.add(spec["tokenRequests"].empty() ? "<unset>" : join(audiences, ","));
  row.add(spec["requiresRepublish"].as_bool());
  row.add(modes.empty() ? "<none>" : modes);
  row.age();
}

void print_driver_node(Row& row) {
  row.name();
  row.add(static_cast<std::int64_t>(row.object["spec"]["drivers"].size()));
  row.age();
}

void print_attachment(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(spec["attacher"].as_string());
  row.add(spec["source"]["persistentVolumeName"].as_string());
  row.add(spec["nodeName"].as_string());
  row.add(row.object["status"]["attached"].as_bool());
  row.age();
}

std::vector<Column> attachment_columns() {
  Column attacher = text_column("Attacher", "The driver that attaches");
  attacher.format = "name";
  return {name_column(),
          attacher,
          text_column("PV", "The volume"),
          text_column("Node", "The node it is attached to"),
          boolean_column("Attached", "Whether it is attached"),
          age_column()};
}

}  // namespace

void add_storage(Printers& printers) {
  Column attributes = text_column("VolumeAttributesClass", "Class of its changeable attributes");
  printers.add(
      "", "PersistentVolume",
      {name_column(), text_column("Capacity", "Its size"),
       text_column("Access Modes", "How it may be mounted"),
       text_column("Reclaim Policy", "What happens after its claim is gone"),
       text_column("Status", "Its phase"), text_column("Claim", "The claim it is bound to"),
       text_column("StorageClass", "Its class"), attributes,
       text_column("Reason", "Why it is in its phase"), age_column(),
       wide(text_column("VolumeMode", "File system or block device"))},
      print_volume);
  printers.add("", "PersistentVolumeClaim",
               {name_column(), text_column("Status", "Its phase"),
                text_column("Volume", "The volume it is bound to"),
                text_column("Capacity", "Size of the volume"),
                text_column("Access Modes", "How the volume may be mounted"),
                text_column("StorageClass", "The class it asks for"), attributes, age_column(),
                wide(text_column("VolumeMode", "File system or block device"))},
               print_claim);
  printers.add(kGroup, "StorageClass",
               {name_column(), text_column("Provisioner", "Who makes the volumes"),
                text_column("ReclaimPolicy", "What happens to volumes without a claim"),
                text_column("VolumeBindingMode", "When volumes are bound"),
                text_column("AllowVolumeExpansion", "Whether volumes may grow"), age_column()},
               print_class);
  printers.add(kGroup, "VolumeAttributesClass",
               {name_column(), text_column("DriverName", "The driver it is for"), age_column()},
               print_attributes_class);
  printers.add(
      kGroup, "CSIDriver",
      {name_column(), boolean_column("AttachRequired", "Whether volumes are attached first"),
       boolean_column("PodInfoOnMount", "Whether it wants to know the pod"),
       boolean_column("StorageCapacity", "Whether it tells free capacity"),
       text_column("TokenRequests", "Audiences of the tokens it wants"),
       boolean_column("RequiresRepublish", "Whether volumes are published repeatedly"),
       text_column("Modes", "Life cycles of volumes it knows"), age_column()},
      print_driver);
  printers.add(
      kGroup, "CSINode",
      {name_column(), integer_column("Drivers", "How many drivers the node has"), age_column()},
      print_driver_node);
  printers.add(kGroup, "VolumeAttachment", attachment_columns(), print_attachment);
}

}  // namespace dibs::api::print
