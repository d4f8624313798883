#pragma once
// For tests of this library: small schemas made by hand, and the recorded sessions.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"
#include "json/value.h"

namespace dibs::api::test {

using json::Value;

/// Parses JSON with ' in place of "; a fault ends the test program.
Value from_text(std::string_view text);

/// Schemas that live as long as the builder.
class SchemaBuilder {
 public:
  Schema& scalar(Shape shape);
  Schema& map(const Schema& element);
  Schema& list(const Schema& element, ListType type = ListType::atomic,
               std::vector<std::string> keys = {});
  Schema& object(std::string name, std::vector<Field> fields);
  static Field field(std::string name, const Schema& schema);
  /// Of a list with strategy merge.
  static Field merged(std::string name, const Schema& schema, std::string key = "");

  /// From an OpenAPI schema of a custom resource.
  const Schema& from_openapi(const Value& openapi);

  /// A kind with something of everything: spec has replicas, image, ports (keyed by port and
  /// protocol, which defaults to TCP), set, args (atomic), selector (atomic), labels (map), any
  /// (granular), opaque (atomic); status has conditions (keyed by type).
  const Schema& thing();

 private:
  std::deque<Schema> schemas_;
  const Schema* thing_ = nullptr;
};

/// The folder of recordings, or "" when it is not there.
std::string conformance_folder();
std::string read_file(const std::string& path);
/// The steps of a session in conformance/http/FILE.json; null when absent.
Value session_steps(std::string_view file, std::string_view session);

}  // namespace dibs::api::test
