// Defaults of pods and pod templates.

#include <algorithm>
#include <string>
#include <string_view>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/storage/volumes.h"
#include "base/image_reference.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr int kFileMode = 0644;

std::string_view pull_policy(std::string_view image) {
  const auto reference = parse_image_reference(image);
  return reference && reference->tag == "latest" ? "Always" : "IfNotPresent";
}

void set_http_get_defaults(Value& handler) {
  if (!is_set(handler, "httpGet")) return;
  Value& get = handler.mut("httpGet");
  set_default_text(get, "path", "/");
  set_default_text(get, "scheme", "HTTP");
}

void set_default_number(Value& object, std::string_view key, int number) {
  if (object[key].as_int() == 0) object.set(key, number);
}

void set_probe_defaults(Value& container, std::string_view key) {
  if (!is_set(container, key)) return;
  Value& probe = container.mut(key);
  set_http_get_defaults(probe);
  if (is_set(probe, "grpc")) set_default(probe.mut("grpc"), "service", "");
  set_default_number(probe, "timeoutSeconds", 1);
  set_default_number(probe, "periodSeconds", 10);
  set_default_number(probe, "successThreshold", 1);
  set_default_number(probe, "failureThreshold", 3);
}

void set_field_ref_defaults(Value& source) {
  if (is_set(source, "fieldRef")) set_default_text(source.mut("fieldRef"), "apiVersion", "v1");
  if (is_set(source, "resourceFieldRef")) {
    set_default(source.mut("resourceFieldRef"), "divisor", "0");
  }
}

void set_container_defaults(Value& container) {
  set_default(container, "resources", Value::object());
  set_default_text(container, "imagePullPolicy", pull_policy(container["image"].as_string()));
  set_default_text(container, "terminationMessagePath", "/dev/termination-log");
  set_default_text(container, "terminationMessagePolicy", "File");
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    set_probe_defaults(container, probe);
  }
  if (is_set(container, "lifecycle")) {
    Value& lifecycle = container.mut("lifecycle");
    for (const char* hook : {"postStart", "preStop"}) {
      if (is_set(lifecycle, hook)) set_http_get_defaults(lifecycle.mut(hook));
    }
  }
  for (std::size_t i = 0; i < container["ports"].size(); ++i) {
    if (container["ports"][i]["protocol"].as_string().empty()) {
      container.mut("ports").mut(i).set("protocol", "TCP");
    }
  }
  for (std::size_t i = 0; i < container["env"].size(); ++i) {
    const Value& from = container["env"][i]["valueFrom"];
    if (is_set(from, "fieldRef") || is_set(from, "resourceFieldRef")) {
      set_field_ref_defaults(container.mut("env").mut(i).mut("valueFrom"));
    } else if (is_set(from, "fileKeyRef")) {
      set_default(container.mut("env").mut(i).mut("valueFrom").mut("fileKeyRef"), "optional",
                  false);
    }
  }
}

void set_each_container(Value& spec, std::string_view list) {
  if (spec[list].empty()) return;
  Value& containers = spec.mut(list);
  for (std::size_t i = 0; i < containers.size(); ++i) set_container_defaults(containers.mut(i));
}

void set_downward_defaults(Value& source) {
  for (std::size_t i = 0; i < source["items"].size(); ++i) {
    set_field_ref_defaults(source.mut("items").mut(i));
  }
}

void set_projected_defaults(Value& projected) {
  set_default(projected, "defaultMode", kFileMode);
  for (std::size_t i = 0; i < projected["sources"].size(); ++i) {
    const Value& source = projected["sources"][i];
    if (is_set(source, "serviceAccountToken")) {
      set_default(projected.mut("sources").mut(i).mut("serviceAccountToken"), "expirationSeconds",
                  3600);
    } else if (is_set(source, "downwardAPI")) {
      set_downward_defaults(projected.mut("sources").mut(i).mut("downwardAPI"));
    } else if (is_set(source, "podCertificate")) {
      set_default(projected.mut("sources").mut(i).mut("podCertificate"), "maxExpirationSeconds",
                  86400);
    }
  }
}

void set_volume_defaults(Value& volume) {
  bool has_source = false;
  for (const auto& [key, value] : volume.members()) {
    has_source = has_source || (key != "name" && !value.is_null());
  }
  if (!has_source) {
    volume.set("emptyDir", Value::object());
    return;
  }
  for (const char* key : {"secret", "configMap", "downwardAPI"}) {
    if (is_set(volume, key)) set_default(volume.mut(key), "defaultMode", kFileMode);
  }
  if (is_set(volume, "downwardAPI")) set_downward_defaults(volume.mut("downwardAPI"));
  if (is_set(volume, "projected")) set_projected_defaults(volume.mut("projected"));
  if (is_set(volume, "hostPath")) set_default(volume.mut("hostPath"), "type", "");
  if (is_set(volume, "iscsi")) {
    set_default_text(volume.mut("iscsi"), "iscsiInterface", "default");
  }
  if (is_set(volume, "image")) {
    Value& image = volume.mut("image");
    set_default_text(image, "pullPolicy", pull_policy(image["reference"].as_string()));
  }
  if (is_set(volume, "ephemeral")) {
    Value& ephemeral = volume.mut("ephemeral");
    if (is_set(ephemeral, "volumeClaimTemplate")) {
      set_default(ephemeral.mut("volumeClaimTemplate").mut("spec"), "volumeMode", "Filesystem");
    }
  }
  if (is_set(volume, "rbd")) {
    Value& rbd = volume.mut("rbd");
    set_default_text(rbd, "pool", "rbd");
    set_default_text(rbd, "user", "admin");
    set_default_text(rbd, "keyring", "/etc/ceph/keyring");
  }
  if (is_set(volume, "azureDisk")) {
    Value& disk = volume.mut("azureDisk");
    set_default(disk, "cachingMode", "ReadWrite");
    set_default(disk, "kind", "Shared");
    set_default(disk, "fsType", "ext4");
    set_default(disk, "readOnly", false);
  }
  if (is_set(volume, "scaleIO")) {
    Value& scale_io = volume.mut("scaleIO");
    set_default_text(scale_io, "storageMode", "ThinProvisioned");
    set_default_text(scale_io, "fsType", "xfs");
  }
}

// In the network of the node a port can only be itself.
void set_host_ports(Value& spec, std::string_view list) {
  for (std::size_t i = 0; i < spec[list].size(); ++i) {
    for (std::size_t p = 0; p < spec[list][i]["ports"].size(); ++p) {
      const Value& port = spec[list][i]["ports"][p];
      if (port["hostPort"].as_int() != 0 || !port.contains("containerPort")) continue;
      Value number = port["containerPort"];
      spec.mut(list).mut(i).mut("ports").mut(p).set("hostPort", number);
    }
  }
}

}  // namespace

void set_pod_spec_defaults(Value& spec, bool in_template) {
  // The older name of the field follows the newer one, and stands in for it.
  if (spec["serviceAccountName"].as_string().empty() &&
      !spec["serviceAccount"].as_string().empty()) {
    spec.set("serviceAccountName", Value(spec["serviceAccount"]));
  }
  if (!spec["serviceAccountName"].as_string().empty()) {
    spec.set("serviceAccount", Value(spec["serviceAccountName"]));
  }
  set_default_text(spec, "restartPolicy", "Always");
  set_default_text(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "securityContext", Value::object());
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default_text(spec, "schedulerName", "default-scheduler");
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    set_each_container(spec, list);
  }
  for (std::size_t i = 0; i < spec["volumes"].size(); ++i) {
    set_volume_defaults(spec.mut("volumes").mut(i));
  }
  if (in_template) return;
  set_request_defaults(spec);
  set_default(spec, "enableServiceLinks", true);
  if (spec["hostNetwork"].as_bool()) {
    set_host_ports(spec, "containers");
    set_host_ports(spec, "initContainers");
  }
}

void set_pod_template_defaults(Value& pod_template) {
  set_pod_spec_defaults(pod_template.mut("spec"), true);
}

}  // namespace dibs::api
