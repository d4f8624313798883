#pragma once
// ResourceClaimParameters and ResourceClassParameters of resource.k8s.io/v1alpha2, and which of
// them a claim means.
//
// A reference names either such an object or one of a kind of the vendor's own; then somebody has
// translated that and noted in generatedFrom what it was made from. Of several that were made from
// the same, the first by name counts.
//
// One owner: the scheduler's serial executor.

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "json/value.h"

namespace dibs::scheduler {

/// What a claim's structured parameters come to.
struct FoundParameters {
  std::string problem;   // not empty: what is missing, in upstream's words
  json::Value of_class;  // null: the class has none
  json::Value of_claim;  // never null where nothing is missing
};

class Parameters {
 public:
  // False when nothing that counts changed.
  bool put_claim_parameters(const json::Value& object) { return claims_.put(object); }
  bool put_class_parameters(const json::Value& object) { return classes_.put(object); }
  void remove_claim_parameters(const json::Value& object) { claims_.remove(object); }
  void remove_class_parameters(const json::Value& object) { classes_.remove(object); }

  /// `resource_class`: the ResourceClass of the claim.
  FoundParameters find(const json::Value& claim, const json::Value& resource_class) const;

 private:
  class Objects {
   public:
    bool put(const json::Value& object);
    void remove(const json::Value& object);
    json::Value named(const std::string& key) const;
    /// `name_space`: where to look; empty: everywhere.
    json::Value made_from(const json::Value& reference, std::string_view name_space) const;

   private:
    void forget(const std::string& key);

    std::unordered_map<std::string, json::Value> objects_;    // by key
    std::map<std::string, std::set<std::string>> made_from_;  // keys by reference
  };

  static json::Value find_one(const Objects& objects, const json::Value& reference,
                              std::string_view kind, std::string_view name_space, bool of_class,
                              std::string& problem);

  Objects claims_;
  Objects classes_;
};

}  // namespace dibs::scheduler
