#pragma once
// What of a request the audit log tells: the rules of an audit.k8s.io/v1 Policy.
//
// The first rule that fits decides; what none fits is not told.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/auth/attributes.h"

namespace dibs::server {

enum class AuditLevel : std::uint8_t { none, metadata, request, request_response };
/// `panic` is known to policies and never comes: handlers here do not throw.
enum class AuditStage : std::uint8_t {
  request_received,
  response_started,
  response_complete,
  panic
};

std::string_view name_of(AuditLevel level);
std::string_view name_of(AuditStage stage);

struct AuditChoice {
  AuditLevel level = AuditLevel::none;
  std::uint8_t omitted_stages = 0;  // a bit for each
  bool omit_managed_fields = false;

  bool tells(AuditStage stage) const {
    return level != AuditLevel::none && (omitted_stages >> static_cast<unsigned>(stage) & 1) == 0;
  }
};

class AuditPolicy {
 public:
  /// YAML or JSON. Errors name the field.
  static Result<AuditPolicy> parse(std::string_view text);

  /// `known`: who sends it was made out. Otherwise no rule about users fits.
  AuditChoice choose(const auth::RequestAttributes& what, bool known = true) const;

 private:
  struct Resources {
    std::string group;
    std::vector<std::string> resources;
    std::vector<std::string> names;
  };
  struct Rule {
    AuditChoice choice;
    std::vector<std::string> users, groups, verbs, namespaces, urls;
    std::vector<Resources> resources;
  };
  static bool fits(const Rule& rule, const auth::RequestAttributes& what, bool known);
  static bool fits_resource(const Rule& rule, const auth::RequestAttributes& what);

  std::vector<Rule> rules_;
};

}  // namespace dibs::server
