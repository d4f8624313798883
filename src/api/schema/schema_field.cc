#include "api/schema/schema_field.h"

#include "api/schema/schema_lines.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

/// The flags that say something by being there.
bool* plain_flag(FieldText& text, std::string_view name) {
  struct Named {
    std::string_view name;
    bool* flag;
  };
  const Named flags[] = {{"keep", &text.keep},
                         {"omit", &text.omit},
                         {"required", &text.field.required},
                         {"beside", &text.beside},
                         {"set", &text.type.set},
                         {"retain-keys", &text.field.retain_keys},
                         {"atomic", &text.type.atomic},
                         {"granular", &text.type.granular},
                         {"wrapped", &text.type.wrapped}};
  for (const Named& flag : flags) {
    if (flag.name == name) return flag.flag;
  }
  return nullptr;
}

}  // namespace

std::string TypeFlags::key() const {
  return cat(go, '|', has_enum ? enum_values : "-", '|', keys, '|', set, atomic, granular, wrapped);
}

Releases releases_of(std::string_view text) {
  auto ends = split(text, '-');
  int first = number_of(ends[0]);
  return {first, ends.size() > 1 ? number_of(ends[1]) : first};
}

bool covers(Releases releases, int minor) {
  return releases.first <= minor && (releases.last == 0 || minor <= releases.last);
}

Result<> read_flags(const std::vector<std::string_view>& words, FieldText& text) {
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view name = words[i].substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? "" : words[i].substr(equals + 1);
    if (bool* flag = plain_flag(text, name)) {
      *flag = true;
    } else if (name == "since") {
      text.releases.first = number_of(value);
    } else if (name == "until") {
      text.releases.last = number_of(value);
    } else if (name == "keys") {
      text.type.keys = value;
    } else if (name == "merge") {
      text.field.merge = true;
      text.field.merge_key = value;
    } else if (name == "go") {
      text.type.go = value;
    } else if (name == "member") {
      text.field.go_name = value;
    } else if (name == "gate") {
      text.field.gates = comma_list(value);
    } else if (name == "enum") {
      text.type.has_enum = true;
      text.type.enum_values = value;
    } else if (name == "default") {
      DIBS_TRY(text.field.default_value, json::parse(value));
    } else {
      return Error::internal(cat("unknown flag \"", name, "\""));
    }
  }
  return success();
}

}  // namespace dibs::api
