#include "api/kinds/storage/parts.h"

#include <string>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/names.h"

namespace dibs::api::volume {
namespace {

const std::vector<std::string>& access_modes() {
  static const std::vector<std::string> modes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                                 "ReadWriteOncePod"};
  return modes;
}

}  // namespace

void check_access_modes(const Value& modes, const Path& path, FieldErrors& errors) {
  bool exclusive = false;
  bool others = false;
  for (const Value& mode : modes.items()) {
    std::string_view text = mode.as_string();
    bool known =
        is_one_of(text, {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    if (!known) errors.not_supported(path, mode, access_modes());
    if (text == "ReadWriteOncePod") {
      exclusive = true;
    } else if (known) {
      others = true;
    }
  }
  if (exclusive && others) {
    errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
  }
}

Quantity amount(const Value& value) {
  Result<Quantity> parsed =
      Quantity::parse(value.is_string() ? value.as_string() : std::string_view("0"));
  return parsed.ok() ? *parsed : Quantity();
}

void check_positive(const Value& value, const Path& path, FieldErrors& errors) {
  if (amount(value).sign() <= 0) errors.invalid(path, value, "must be greater than zero");
}

void check_class_name(const Value& name, const Path& path, FieldErrors& errors) {
  if (name.as_string().empty()) return;
  add_invalid(is_dns1123_subdomain(name.as_string()), name, path, errors);
}

void check_volume_mode(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& mode = spec["volumeMode"];
  if (!mode.is_null() && !is_one_of(mode.as_string(), {"Block", "Filesystem"})) {
    errors.not_supported(path.child("volumeMode"), mode, {"Block", "Filesystem"});
  }
}

void require(const Value& object, std::string_view key, const Path& path, FieldErrors& errors) {
  if (object[key].as_string().empty()) errors.required(path.child(key));
}

}  // namespace dibs::api::volume
