#include "api/schema/schema_text.h"

#include <algorithm>
#include <set>

#include "api/schema/declared.h"
#include "api/schema/schema_field.h"
#include "api/schema/schema_lines.h"
#include "base/release.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

std::vector<std::string> strings_of(const std::vector<std::string_view>& words, std::size_t from) {
  return {words.begin() + static_cast<std::ptrdiff_t>(from), words.end()};
}

struct Scalar {
  std::string_view word;
  Shape shape;
  std::string_view go;
};
constexpr Scalar kScalars[] = {
    {"string", Shape::string, "string"},
    {"bytes", Shape::bytes, "[]uint8"},
    {"bool", Shape::boolean, "bool"},
    {"int32", Shape::int32, "int32"},
    {"int64", Shape::int64, "int64"},
    {"double", Shape::number, "float64"},
    {"quantity", Shape::quantity, "resource.Quantity"},
    {"int-or-string", Shape::int_or_string, "intstr.IntOrString"},
    {"time", Shape::time, "v1.Time"},
    {"micro-time", Shape::micro_time, "v1.MicroTime"},
    {"duration", Shape::duration, "v1.Duration"},
    {"fields", Shape::fields_v1, "v1.FieldsV1"},
    {"raw", Shape::any, "runtime.RawExtension"},
    {"json", Shape::any, "v1.JSON"},
    {"schema-or-array", Shape::any, "v1.JSONSchemaPropsOrArray"},
    {"schema-or-bool", Shape::any, "v1.JSONSchemaPropsOrBool"},
    {"schema-or-strings", Shape::any, "v1.JSONSchemaPropsOrStringArray"},
};

/// Go structs: a value of theirs is always written.
bool is_struct(const Schema& schema) {
  switch (schema.shape) {
    case Shape::object:
    case Shape::quantity:
    case Shape::int_or_string:
    case Shape::time:
    case Shape::micro_time:
    case Shape::duration:
    case Shape::any:
      return true;
    default:
      return false;
  }
}

class Reader {
 public:
  Reader(SchemaBook& book, int minor)
      : book_(book), minor_(minor == 0 ? kNewestRelease : minor), emulating_(minor != 0) {}

  Result<> read(const SchemaBlock& block) {
    if (auto head = read_head(block.head.words); !head.ok())
      return fault_at(block.head, head.error().message());
    for (const SchemaLine& line : block.lines) {
      if (auto read = read_indented(line.words); !read.ok())
        return fault_at(line, read.error().message());
    }
    return success();
  }

  Result<> finish() {
    for (auto& [name, schema] : book_.types) {
      if (!defined_.contains(schema)) return Error::internal(cat("type ", name, " is not defined"));
    }
    for (Schema& schema : book_.schemas) expand(schema);
    for (Schema& schema : book_.schemas) {
      if (schema.shape == Shape::object) finish_object(schema);
    }
    for (auto& [copy, original] : granular_) {
      *copy = *original;
      copy->atomic = granular_atomic_.at(copy);
    }
    for (Schema& schema : book_.schemas) fill_empty(schema);
    mark(&Schema::may_default, [](const Field& field) { return field.default_value.has_value(); });
    mark(&Schema::judged, [](const Field& field) { return field.declared != nullptr; });
    mark(&Schema::gated, [](const Field& field) { return !field.gates.empty(); });
    finish_catalog();
    return success();
  }

 private:
  Result<> read_head(const std::vector<std::string_view>& words) {
    std::string_view word = words[0];
    type_ = nullptr;
    resource_ = nullptr;
    if (word == "package" && words.size() == 3) {
      package_ = words[1];
      version_info_ = nullptr;
      full_prefix_ = words[2];
      go_package_ = package_.substr(package_.find('/') + 1);
    } else if (word == "group" && words.size() == 3) {
      group_ = words[1] == "\"\"" ? "" : words[1];
      version_ = words[2];
      book_.versions[cat(group_, "/", version_)] = package_;
      version_info_ = &versions_[{std::string(group_), std::string(version_)}];
      version_info_->version = version_;
    } else if (word == "releases" && words.size() == 2 && version_info_ != nullptr) {
      Releases releases = releases_of(words[1]);
      version_info_->first_release = releases.first;
      version_info_->last_release = releases.last;
    } else if (word == "order" && words.size() >= 3) {
      order_.push_back({words[1] == "\"\"" ? "" : std::string(words[1]), strings_of(words, 2)});
    } else if (word == "resource" && words.size() == 3 && version_info_ != nullptr) {
      start_resource(words);
    } else if (word == "type" && words.size() >= 2) {
      start_type(words);
    } else {
      return Error::internal(cat("cannot read \"", word, "\""));
    }
    return success();
  }

  void start_resource(const std::vector<std::string_view>& words) {
    resource_ = &version_info_->resources.emplace_back();
    resource_->group = group_;
    resource_->version = version_;
    resource_->plural = words[1];
    resource_->kind = words[2];
    resource_->storage_version = version_;
    resource_->hub_group = group_;
    resource_->hub_version = version_;
  }

  void start_type(const std::vector<std::string_view>& words) {
    type_ = named(cat(package_, '.', words[1]));
    defined_.insert(type_);
    type_->shape = Shape::object;
    type_->name = words[1];
    type_->full_name = cat(full_prefix_, '.', words[1]);
    type_->go_type = cat(go_package_, '.', words[1]);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "atomic") type_->atomic = true;
      if (words[i] == "part") type_->full_name.clear();
      if (words[i] == "kind") {
        if (package_ == "meta/v1") {
          book_.meta_kinds[type_->name] = type_;
        } else {
          book_.kinds[cat(group_, '/', version_, '/', type_->name)] = type_;
        }
      }
    }
  }

  Result<> read_indented(const std::vector<std::string_view>& words) {
    if (resource_ != nullptr) return read_resource_line(words);
    if (type_ != nullptr) return read_field(words);
    return Error::internal("a line of nothing");
  }

  Result<> read_resource_line(const std::vector<std::string_view>& words) {
    std::string_view word = words[0];
    if (words.size() < 2) return Error::internal(cat("nothing after ", word));
    if (word == "singular")
      resource_->singular = words[1];
    else if (word == "scope")
      resource_->namespaced = words[1] == "namespaced";
    else if (word == "short")
      resource_->short_names = strings_of(words, 1);
    else if (word == "categories")
      resource_->categories = strings_of(words, 1);
    else if (word == "verbs")
      resource_->verbs = strings_of(words, 1);
    else if (word == "prefix") {
      resource_->storage_prefix =
          words[1][0] == '/' ? cat(words[1], '/') : cat("/registry/", words[1], '/');
    } else if (word == "storage") {
      if (words.size() < 3 || covers(releases_of(words[2]), minor_))
        resource_->storage_version = words[1];
    } else if (word == "releases") {
      if (!covers(releases_of(words[1]), minor_))
        left_out_.insert(cat(group_, '/', version_, '/', resource_->plural));
    } else if (word == "sub-releases" && words.size() == 3) {
      if (!covers(releases_of(words[2]), minor_)) {
        std::erase_if(resource_->subresources,
                      [&](const SubresourceInfo& sub) { return sub.name == words[1]; });
      }
    } else if (word == "hub") {
      std::size_t slash = words[1].find('/');
      resource_->hub_group = slash == std::string_view::npos ? "" : words[1].substr(0, slash);
      resource_->hub_version =
          slash == std::string_view::npos ? words[1] : words[1].substr(slash + 1);
    } else if (word == "sub" && words.size() > 3) {
      SubresourceInfo sub{std::string(words[1]), {}, strings_of(words, 3)};
      std::string_view kind = words[2];
      std::size_t dot = kind.rfind('.');
      if (dot == std::string_view::npos) {
        sub.kind = {std::string(group_), std::string(version_), std::string(kind)};
      } else {
        std::size_t slash = kind.find('/');
        sub.kind = {std::string(kind.substr(0, slash)),
                    std::string(kind.substr(slash + 1, dot - slash - 1)),
                    std::string(kind.substr(dot + 1))};
      }
      resource_->subresources.push_back(std::move(sub));
    } else {
      return Error::internal(cat("cannot read \"", word, "\""));
    }
    return success();
  }

  Result<> read_field(const std::vector<std::string_view>& words) {
    if (words[0] == "inline" && words.size() >= 3) {
      if (words.size() > 3 && words[3] == "untold") untold_.insert(type_);
      type_->inlined.push_back(
          {static_cast<std::uint32_t>(number_of(words[2])), named(cat(package_, '.', words[1]))});
      inlined_at_[type_].push_back(type_->fields.size());
      return success();
    }
    if (words.size() < 3) return Error::internal("a field has a name, a type and a number");
    auto bar = std::find(words.begin(), words.end(), "|");
    FieldText text;
    DIBS_CHECK(read_flags({words.begin(), bar}, text));
    Field& field = text.field;
    if (bar != words.end()) {
      DIBS_TRY(Declared rules, read_declared({bar + 1, words.end()}));
      field.declared = std::make_shared<const Declared>(std::move(rules));
    }
    field.name = words[0];
    std::string_view kind = words[1];
    if (kind[0] == '*') {
      field.pointer = true;
      kind.remove_prefix(1);
    }
    field.proto = words[2] == "-" ? 0 : static_cast<std::uint32_t>(number_of(words[2]));
    DIBS_TRY(Schema * schema, schema_of(kind, text.type));
    if (!covers(text.releases, minor_) || (text.beside && emulating_)) return success();
    field.schema = schema;
    bool always = !field.pointer && !text.omit && (text.keep || is_struct(*schema));
    field.zero = always || (field.pointer && text.keep) ? Zero::keep : Zero::omit;
    type_->fields.push_back(std::move(field));
    return success();
  }

  Schema* named(std::string name) {
    auto [it, fresh] = book_.types.try_emplace(std::move(name), nullptr);
    if (fresh) it->second = &book_.schemas.emplace_back();
    return it->second;
  }

  std::string go_name(std::string_view go) const {
    return go.find('.') != std::string_view::npos ? std::string(go) : cat(go_package_, '.', go);
  }

  Result<Schema*> schema_of(std::string_view kind, const TypeFlags& flags) {
    bool is_named = kind[0] >= 'A' && kind[0] <= 'Z';
    std::string full = is_named ? cat(package_, '.', kind) : std::string(kind);
    is_named = is_named || full.find('.') != std::string::npos;
    if (kind[0] == '[' || kind[0] == '{') is_named = false;
    if (is_named && !flags.granular && !flags.atomic) return named(full);
    std::string key = cat(package_, ' ', kind, ' ', flags.key());
    auto [it, fresh] = interned_.try_emplace(std::move(key), nullptr);
    if (!fresh) return it->second;
    Schema* schema = &book_.schemas.emplace_back();
    it->second = schema;
    if (is_named) {
      // Filled when the original is complete.
      granular_.push_back({schema, named(full)});
      granular_atomic_[schema] = flags.atomic;
      defined_.insert(schema);
      return schema;
    }
    if (kind.starts_with("[]") || kind.starts_with("{}")) {
      bool list = kind[0] == '[';
      schema->shape = list ? Shape::list : Shape::map;
      std::string_view inner = kind.substr(2);
      bool innermost = inner[0] != '[' && inner[0] != '{';
      TypeFlags rest;
      bool named_here = !flags.go.empty() && innermost && inner != "string";
      if (!named_here) {
        rest.go = flags.go;
        rest.enum_values = flags.enum_values;
        rest.has_enum = flags.has_enum;
      }
      rest.wrapped = flags.wrapped && !innermost;
      DIBS_TRY(Schema * element, schema_of(inner, rest));
      schema->element = element;
      schema->wrapped = flags.wrapped && innermost;
      if (list) {
        schema->list_type = !flags.keys.empty() ? ListType::map
                            : flags.set         ? ListType::set
                                                : ListType::atomic;
        if (!flags.keys.empty()) schema->map_keys = comma_list(flags.keys);
      }
      schema->atomic = flags.atomic;
      if (named_here) schema->go_type = go_name(flags.go);
      return schema;
    }
    for (const Scalar& scalar : kScalars) {
      if (scalar.word != kind) continue;
      schema->shape = scalar.shape;
      schema->go_type = flags.go.empty() ? std::string(scalar.go) : go_name(flags.go);
      if (flags.has_enum) schema->enum_values = comma_list(flags.enum_values);
      if (kind == "raw") schema->any_form = AnyForm::raw;
      if (kind == "schema-or-array") schema->any_form = AnyForm::schema_or_array;
      if (kind == "schema-or-bool") schema->any_form = AnyForm::schema_or_bool;
      if (kind == "schema-or-strings") schema->any_form = AnyForm::schema_or_strings;
      if (kind.starts_with("schema-or-"))
        schema->element = named(cat(package_, ".JSONSchemaProps"));
      return schema;
    }
    return Error::internal(cat("unknown type \"", kind, "\""));
  }

  /// Takes the fields of inlined messages into the JSON object, where the text has the message.
  void expand(Schema& schema) {
    if (schema.inlined.empty() || !expanded_.insert(&schema).second) return;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < schema.inlined.size(); ++i) {
      const Schema& part = *schema.inlined[i].schema;
      expand(const_cast<Schema&>(part));
      std::size_t at = inlined_at_[&schema][i] + taken;
      taken += part.fields.size();
      for (Field field : part.fields) {
        if (!untold_.contains(&schema)) {
          field.embedded = field.embedded.empty() ? part.name : cat(part.name, '.', field.embedded);
        }
        field.proto = 0;
        schema.fields.insert(schema.fields.begin() + static_cast<std::ptrdiff_t>(at++),
                             std::move(field));
      }
    }
  }

  static void finish_object(Schema& schema) {
    auto& fields = schema.fields;
    std::vector<std::string> stated;
    for (const Field& field : fields) stated.push_back(field.name);
    std::sort(fields.begin(), fields.end(),
              [](const Field& a, const Field& b) { return a.name < b.name; });
    for (const std::string& name : stated) {
      auto at = std::lower_bound(
          fields.begin(), fields.end(), name,
          [](const Field& field, const std::string& wanted) { return field.name < wanted; });
      schema.stated.push_back(static_cast<std::uint16_t>(at - fields.begin()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      auto index = static_cast<std::uint16_t>(i);
      if (fields[i].proto != 0) schema.wire.push_back(index);
      if (fields[i].zero == Zero::keep) schema.kept.push_back(index);
    }
    std::sort(schema.wire.begin(), schema.wire.end(),
              [&](auto a, auto b) { return fields[a].proto < fields[b].proto; });
    schema.index_fields();
  }

  /// Value fields cannot hold their own type, so this ends.
  static void fill_empty(Schema& schema) {
    if (schema.shape == Shape::list || schema.shape == Shape::map) {
      if (schema.go_type.empty()) schema.go_type = container_go_type(schema);
      return;
    }
    if (schema.shape != Shape::object || schema.empty.is_object()) return;
    json::Value empty = json::Value::object();
    for (std::uint16_t index : schema.kept) {
      const Field& field = schema.fields[index];
      empty.set(field.name, zero_of(field));
    }
    schema.empty = std::move(empty);
  }

  static std::string container_go_type(const Schema& schema) {
    std::string inner = schema.element->go_type;
    if (inner.empty()) inner = container_go_type(*schema.element);
    return cat(schema.shape == Shape::list ? "[]" : "map[string]", inner);
  }

  static json::Value zero_of(const Field& field) {
    if (field.pointer) return {};
    if (field.schema->shape == Shape::object) fill_empty(const_cast<Schema&>(*field.schema));
    return zero_value(*field.schema);
  }

  /// Types may hold each other in a circle, so this goes on until nothing changes.
  template <typename Has>
  void mark(bool Schema::*flag, Has has) {
    for (Schema& schema : book_.schemas) schema.*flag = false;
    for (bool again = true; again;) {
      again = false;
      for (Schema& schema : book_.schemas) {
        if (schema.*flag || schema.shape == Shape::any) continue;
        bool found = schema.element != nullptr && schema.element->*flag;
        for (const Field& field : schema.fields) {
          found = found || has(field) || field.schema->*flag;
        }
        schema.*flag = found;
        again = again || found;
      }
    }
  }

  /// Group-versions that an emulated release does not have are as unknown as any other name.
  void leave_out_versions() {
    std::erase_if(versions_, [&](const auto& item) {
      const VersionInfo& info = item.second;
      if (covers({info.first_release, info.last_release}, minor_)) return false;
      std::string path = cat(item.first.first, '/', item.first.second);
      book_.versions.erase(path);
      std::erase_if(book_.kinds,
                    [&](const auto& kind) { return kind.first.starts_with(cat(path, '/')); });
      return true;
    });
  }

  void finish_catalog() {
    if (emulating_) leave_out_versions();
    for (auto& [group, versions] : order_) {
      GroupInfo info;
      info.name = group;
      for (const std::string& version : versions) {
        auto it = versions_.find({group, version});
        if (it == versions_.end()) continue;
        std::erase_if(it->second.resources, [this](const ResourceInfo& resource) {
          return left_out_.contains(
              cat(resource.group, '/', resource.version, '/', resource.plural));
        });
        if (it->second.resources.empty()) continue;
        for (ResourceInfo& resource : it->second.resources) {
          auto kind = book_.kinds.find(cat(group, '/', version, '/', resource.kind));
          if (kind != book_.kinds.end()) resource.schema = kind->second;
          resource.release = emulating_ ? minor_ : 0;
          bool listed = std::find(resource.verbs.begin(), resource.verbs.end(), "list") !=
                        resource.verbs.end();
          if (listed) resource.list_kind = resource.kind + "List";
        }
        info.versions.push_back(std::move(it->second));
      }
      if (!info.versions.empty()) book_.catalog.groups.push_back(std::move(info));
    }
  }

  SchemaBook& book_;
  const int minor_;
  const bool emulating_;
  std::set<std::string> left_out_;  // resources that other releases have
  std::string_view package_;
  std::string_view full_prefix_;
  std::string_view go_package_;
  std::string_view group_;
  std::string_view version_;
  VersionInfo* version_info_ = nullptr;
  Schema* type_ = nullptr;
  ResourceInfo* resource_ = nullptr;
  std::map<std::pair<std::string, std::string>, VersionInfo> versions_;
  std::vector<std::pair<std::string, std::vector<std::string>>> order_;
  std::unordered_map<std::string, Schema*> interned_;
  std::set<const Schema*> defined_;
  std::set<const Schema*> expanded_;
  std::map<const Schema*, std::vector<std::size_t>> inlined_at_;  // fields before each part
  std::set<const Schema*> untold_;  // whose embedded structs do not show in messages
  std::vector<std::pair<Schema*, const Schema*>> granular_;
  std::map<const Schema*, bool> granular_atomic_;
};

}  // namespace

json::Value zero_value(const Schema& schema) {
  switch (schema.shape) {
    case Shape::string:
    case Shape::bytes:
      return "";
    case Shape::boolean:
      return false;
    case Shape::int32:
    case Shape::int64:
    case Shape::number:
    case Shape::int_or_string:
      return 0;
    case Shape::quantity:
      return "0";
    case Shape::duration:
      return "0s";
    case Shape::object:
      return schema.empty;
    default:
      return {};
  }
}

Result<std::unique_ptr<SchemaBook>> read_schemas(const std::vector<SchemaText>& texts, int minor) {
  auto book = std::make_unique<SchemaBook>();
  Reader reader(*book, minor);
  DIBS_TRY(std::vector<SchemaBlock> blocks, read_blocks(texts));
  for (const SchemaBlock& block : blocks) DIBS_CHECK(reader.read(block));
  DIBS_CHECK(reader.finish());
  return book;
}

}  // namespace dibs::api
