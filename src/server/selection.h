#pragma once
// The labelSelector and fieldSelector of one request, ready to judge objects.

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/http.h"
#include "server/resource.h"

namespace dibs::server {

class Selection {
 public:
  Selection();
  Selection(Selection&&) noexcept;
  Selection& operator=(Selection&&) noexcept;
  ~Selection();

  /// Errors: bad_request, for what cannot be parsed and for fields the kind does not have.
  static Result<Selection> parse(const net::Target& target, const Resource& resource);

  /// True when every object matches.
  bool everything() const;
  bool matches(const Value& object) const;
  /// The name, when the selection fixes metadata.name.
  std::optional<std::string> exact_name() const;
  void require_name(std::string name);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace dibs::server
