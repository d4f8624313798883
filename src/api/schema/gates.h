#pragma once
// Fields that their gates keep out (`gate=` in schema texts).
//
// With a gate off its fields are as good as unknown: they are dropped before anything is judged, so
// even a wrong one is accepted. An object that uses one of them already keeps all: what was
// accepted once stays.

#include <string>
#include <vector>

#include "api/schema/features.h"
#include "api/schema/schema.h"

namespace dibs::api {

class Gates {
 public:
  /// Of a kind, or of a part of one; the schema must outlive this.
  explicit Gates(const Schema& schema);

  /// `old` is the object that is replaced, or null.
  void drop_disabled(json::Value& object, const json::Value* old, const Features& features) const;

 private:
  const Schema& schema_;
  std::vector<std::string> names_;  // of all gates in it
};

}  // namespace dibs::api
