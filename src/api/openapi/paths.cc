#include <algorithm>

#include "api/openapi/build.h"
#include "api/schema/builtin.h"
#include "base/strings.h"

namespace dibs::api::openapi {
namespace {

using json::Value;

constexpr std::string_view kMeta = "meta/v1.";

struct Parameter {
  const char* name;
  const char* type;
  const char* words;
};

constexpr Parameter kListParameters[] = {
    {"allowWatchBookmarks", "boolean", "Lets a watch send BOOKMARK events. Ignored without watch."},
    {"continue", "string", "The token of the page before, from its metadata.continue."},
    {"fieldSelector", "string", "Only objects whose fields match."},
    {"labelSelector", "string", "Only objects whose labels match."},
    {"limit", "integer", "At most this many objects in one answer; the rest follows by continue."},
    {"resourceVersion", "string", "How fresh the answer must be, or where a watch begins."},
    {"resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."},
    {"sendInitialEvents", "boolean",
     "Lets a watch begin with the objects there are, closed by a bookmark."},
    {"timeoutSeconds", "integer", "Ends the list or watch after this time."},
    {"watch", "boolean", "Answers with a stream of changes."},
};
constexpr Parameter kDryRun = {"dryRun", "string", "All: do everything but store."};
constexpr Parameter kFieldManager = {"fieldManager", "string",
                                     "The name of who writes, for managedFields."};
constexpr Parameter kFieldValidation = {
    "fieldValidation", "string",
    "What to do about unknown or duplicate fields: Ignore, Warn or Strict."};
constexpr Parameter kForce = {"force", "boolean",
                              "Lets an apply take over fields of other managers."};
constexpr Parameter kPretty = {"pretty", "string", "true: the answer is indented."};
constexpr Parameter kDeleteParameters[] = {
    {"gracePeriodSeconds", "integer", "The time until the object goes; 0 is at once."},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean",
     "Deletes even what cannot be read."},
    {"orphanDependents", "boolean", "Deprecated: use propagationPolicy."},
    {"propagationPolicy", "string",
     "What happens to dependents: Orphan, Background or Foreground."},
};

struct OpenApiPath {
  std::string path;
  std::string id_tail;  // of operationId: "NamespacedPodStatus"
};

class PathBuilder {
 public:
  PathBuilder(Value& paths, const ResourceInfo& resource, Definitions& definitions)
      : paths_(paths),
        resource_(resource),
        definitions_(definitions),
        v3_(definitions.dialect() == Dialect::v3) {
    root_ = resource.group.empty() ? cat("/api/", resource.version)
                                   : cat("/apis/", resource.group, '/', resource.version);
  }

  void add() {
    std::string scope = resource_.namespaced ? "/namespaces/{namespace}/" : "/";
    std::string scoped = resource_.namespaced ? "Namespaced" : "";
    std::string collection = cat(root_, scope, resource_.plural);
    kind_ = {resource_.group, resource_.version, resource_.kind};

    Value item = Value::object();
    if (has("list")) operation(item, "get", "list", cat("list", scoped));
    if (has("create")) operation(item, "post", "post", cat("create", scoped));
    if (has("deletecollection"))
      operation(item, "delete", "deletecollection", cat("deleteCollection", scoped));
    finish(collection, std::move(item), false);

    if (resource_.namespaced && has("list")) {
      Value all = Value::object();
      operation(all, "get", "list", "list", "ForAllNamespaces");
      finish(cat(root_, '/', resource_.plural), std::move(all), false, false);
    }

    item = Value::object();
    if (has("get")) operation(item, "get", "get", cat("read", scoped));
    if (has("update")) operation(item, "put", "put", cat("replace", scoped));
    if (has("patch")) operation(item, "patch", "patch", cat("patch", scoped));
    if (has("delete")) operation(item, "delete", "delete", cat("delete", scoped));
    finish(cat(collection, "/{name}"), std::move(item), true);

    for (const SubresourceInfo& sub : resource_.subresources) add_sub(collection, scoped, sub);
  }

 private:
  bool has(std::string_view verb) const {
    return std::find(resource_.verbs.begin(), resource_.verbs.end(), verb) != resource_.verbs.end();
  }

  void add_sub(const std::string& collection, const std::string& scoped,
               const SubresourceInfo& sub) {
    kind_ = sub.kind;
    std::string tail = sub.name;
    tail[0] = static_cast<char>(tail[0] - 'a' + 'A');
    bool connect = sub.kind.kind.ends_with("Options");
    Value item = Value::object();
    for (const std::string& verb : sub.verbs) {
      if (connect) {
        operation(item, verb == "create" ? "post" : "get", "connect",
                  cat(verb == "create" ? "connectPost" : "connectGet", scoped), tail);
      } else if (verb == "get")
        operation(item, "get", "get", cat("read", scoped), tail);
      else if (verb == "create")
        operation(item, "post", "post", cat("create", scoped), tail);
      else if (verb == "update")
        operation(item, "put", "put", cat("replace", scoped), tail);
      else if (verb == "patch")
        operation(item, "patch", "patch", cat("patch", scoped), tail);
    }
    finish(cat(collection, "/{name}/", sub.name), std::move(item), true);
  }

  /// "AppsV1", "CoreV1", "RbacAuthorizationV1".
  std::string camel_version() const {
    std::string out;
    std::string group = resource_.group.empty() ? "core" : resource_.group;
    if (group.ends_with(".k8s.io")) group.resize(group.size() - 7);
    append(group, '.', resource_.version);
    for (std::string_view part : split(group, '.')) {
      for (std::string_view piece : split(part, '-')) {
        if (piece.empty()) continue;
        out.push_back(piece[0] >= 'a' && piece[0] <= 'z' ? static_cast<char>(piece[0] - 'a' + 'A')
                                                         : piece[0]);
        out.append(piece.substr(1));
      }
    }
    return out;
  }

  /// "listNamespaced" of Pod in core/v1 is "listCoreV1NamespacedPod".
  std::string operation_id(std::string_view start, std::string_view tail) const {
    bool scoped = start.ends_with("Namespaced");
    if (scoped) start.remove_suffix(10);
    return cat(start, camel_version(), scoped ? "Namespaced" : "", resource_.kind, tail);
  }

  Value parameter(const Parameter& p) const {
    Value out = Value::object({{"name", p.name}, {"in", "query"}, {"description", p.words}});
    if (v3_) {
      out.set("schema", Value::object({{"type", p.type}, {"uniqueItems", true}}));
    } else {
      out.set("type", p.type);
      out.set("uniqueItems", true);
    }
    return out;
  }

  Value path_parameter(const char* name, const char* words) const {
    Value out =
        Value::object({{"name", name}, {"in", "path"}, {"description", words}, {"required", true}});
    if (v3_) {
      out.set("schema", Value::object({{"type", "string"}, {"uniqueItems", true}}));
    } else {
      out.set("type", "string");
      out.set("uniqueItems", true);
    }
    return out;
  }

  Value parameters(std::string_view action) const {
    Value list = Value::array();
    bool deletes = action == "delete" || action == "deletecollection";
    if (action == "list" || action == "deletecollection") {
      for (const Parameter& p : kListParameters) {
        std::string_view name = p.name;
        if (action == "deletecollection" && (name == "watch" || name == "allowWatchBookmarks"))
          continue;
        list.push(parameter(p));
      }
    }
    if (deletes || action == "post" || action == "put" || action == "patch")
      list.push(parameter(kDryRun));
    if (deletes) {
      for (const Parameter& p : kDeleteParameters) list.push(parameter(p));
    }
    if (action == "post" || action == "put" || action == "patch") {
      list.push(parameter(kFieldManager));
      list.push(parameter(kFieldValidation));
    }
    if (action == "patch") list.push(parameter(kForce));
    return list;
  }

  Value body_ref(std::string_view action) {
    if (action == "deletecollection" || action == "delete")
      return definitions_.ref(*builtin_type(cat(kMeta, "DeleteOptions")));
    if (action == "patch") {
      return definitions_.ref("io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
                              Value::object({{"type", "object"}}));
    }
    return object_ref(false);
  }

  Value object_ref(bool list) {
    if (resource_.custom && kind_.kind == resource_.kind)
      return custom_ref(resource_, list, definitions_);
    const Schema* schema = builtin_schema(
        kind_.group, kind_.version, list ? kind_.kind + "List" : kind_.kind, resource_.release);
    if (schema == nullptr) return Value::object({{"type", "string"}});
    return definitions_.ref(*schema);
  }

  Value answer_ref(std::string_view action) {
    if (action == "connect") return Value::object({{"type", "string"}});
    if (action == "delete" || action == "deletecollection")
      return definitions_.ref(*builtin_type(cat(kMeta, "Status")));
    return object_ref(action == "list");
  }

  std::vector<std::string> answer_types(std::string_view action) const {
    if (action == "connect") return {"*/*"};
    std::vector<std::string> types = {"application/json", "application/yaml"};
    if (!resource_.custom) types.push_back("application/vnd.kubernetes.protobuf");
    if (action == "list") {
      types.push_back("application/json;stream=watch");
      if (!resource_.custom) types.push_back("application/vnd.kubernetes.protobuf;stream=watch");
    }
    return types;
  }

  std::vector<std::string> patch_types() const {
    std::vector<std::string> types = {"application/apply-patch+yaml", "application/json-patch+json",
                                      "application/merge-patch+json"};
    if (!resource_.custom) types.push_back("application/strategic-merge-patch+json");
    return types;
  }

  static Value strings(const std::vector<std::string>& texts) {
    Value list = Value::array();
    for (const std::string& text : texts) list.push(Value(text));
    return list;
  }

  Value response(std::string_view action, std::string_view words) {
    Value out = Value::object({{"description", Value(words)}});
    Value schema = answer_ref(action);
    if (v3_) {
      Value content = Value::object();
      for (const std::string& type : answer_types(action))
        content.set(type, Value::object({{"schema", schema}}));
      out.set("content", std::move(content));
    } else {
      out.set("schema", std::move(schema));
    }
    return out;
  }

  static std::string words_of(std::string_view action, std::string_view kind,
                              std::string_view tail) {
    std::string what = tail.empty() || tail == "ForAllNamespaces"
                           ? std::string(kind)
                           : cat(to_lower(tail), " of a ", kind);
    if (action == "list") return cat("Lists or watches objects of kind ", what);
    if (action == "get") return cat("Reads one ", what);
    if (action == "post") return cat("Creates a ", what);
    if (action == "put") return cat("Replaces one ", what);
    if (action == "patch") return cat("Changes part of one ", what);
    if (action == "delete") return cat("Deletes one ", what);
    if (action == "deletecollection") return cat("Deletes objects of kind ", what);
    return cat("Connects to the ", what);
  }

  void operation(Value& item, std::string_view method, std::string_view action,
                 std::string_view id_start, std::string_view tail = {}) {
    bool takes_body = action == "post" || action == "put" || action == "patch" ||
                      action == "delete" || action == "deletecollection";
    Value op = Value::object();
    std::string tag =
        cat(resource_.group.empty() ? "core" : resource_.group, '_', resource_.version);
    if (tag.find(".k8s.io") != std::string::npos) tag.erase(tag.find(".k8s.io"), 7);
    op.set("tags", Value::array({Value(tag)}));
    op.set("description", Value(words_of(action, resource_.kind, tail)));
    op.set("operationId", Value(operation_id(id_start, tail)));
    Value params = parameters(action);
    bool required = action == "post" || action == "put" || action == "patch";
    if (v3_) {
      if (takes_body) {
        Value content = Value::object();
        std::vector<std::string> types = {"*/*"};
        if (action == "patch") types = patch_types();
        for (const std::string& type : types)
          content.set(type, Value::object({{"schema", body_ref(action)}}));
        op.set("requestBody", Value::object({{"content", std::move(content)}}));
        if (required) op.mut("requestBody").set("required", true);
      }
    } else {
      op.set("consumes", action == "patch" ? strings(patch_types()) : Value::array({"*/*"}));
      op.set("produces", strings(answer_types(action)));
      op.set("schemes", Value::array({"https"}));
      if (takes_body) {
        Value body =
            Value::object({{"name", "body"}, {"in", "body"}, {"schema", body_ref(action)}});
        if (required) body.set("required", true);
        params.insert(0, std::move(body));
      }
    }
    if (!params.empty()) op.set("parameters", std::move(params));
    Value responses = Value::object({{"200", response(action, "OK")}});
    if (action == "post" || action == "put" || action == "patch")
      responses.set("201", response(action, "Created"));
    if (action == "post" || action == "delete") responses.set("202", response(action, "Accepted"));
    responses.set("401", Value::object({{"description", "Unauthorized"}}));
    op.set("responses", std::move(responses));
    op.set("x-kubernetes-action", Value(action));
    op.set("x-kubernetes-group-version-kind", group_version_kind(kind_));
    item.set(method, std::move(op));
  }

  void finish(const std::string& path, Value item, bool named, bool in_namespace = true) {
    if (item.empty()) return;
    Value params = Value::array();
    if (named) params.push(path_parameter("name", "The name of the object."));
    if (resource_.namespaced && in_namespace)
      params.push(path_parameter("namespace", "The namespace of the object."));
    params.push(parameter(kPretty));
    item.set("parameters", std::move(params));
    paths_.set(path, std::move(item));
  }

  Value& paths_;
  const ResourceInfo& resource_;
  Definitions& definitions_;
  bool v3_;
  std::string root_;
  GroupVersionKind kind_;
};

}  // namespace

void add_paths(Value& paths, const ResourceInfo& resource, Definitions& definitions) {
  PathBuilder(paths, resource, definitions).add();
}

}  // namespace dibs::api::openapi
