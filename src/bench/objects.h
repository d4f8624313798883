#pragma once
// Objects of a workload: templates filled in, sent to where their kind is served, and claims
// allocated without the scheduler, for clusters that are to begin half full.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/cluster.h"
#include "json/value.h"

namespace dibs::bench {

/// One body per object, or a single one where the template makes all of them the same.
struct Bodies {
  std::vector<std::string> texts;
  json::Value first;   // for its kind
  bool named = false;  // has metadata.name, not generateName
  const std::string& at(std::size_t index) const { return texts[texts.size() > 1 ? index : 0]; }
};

class BenchObjects {
 public:
  BenchObjects(BenchCluster& cluster, std::string folder, std::size_t window)
      : cluster_(cluster), folder_(std::move(folder)), window_(window) {}

  /// Fills in the template of a file for `count` objects; .Index begins at 0.
  Result<Bodies> fill(const std::string& path, const json::Value& params, std::size_t count);
  static Result<Bodies> fill_text(std::string_view text, const json::Value& params,
                                  std::size_t count);
  /// The path to create objects of this kind at. Errors: not_found when it is not served.
  Result<std::string> path_for(const json::Value& object, const std::string& name_space);
  Result<> create(const Bodies& bodies, std::size_t count, const std::string& name_space);
  /// New nodes are shut until a controller has found them ready; none does so here.
  Result<> open_nodes();
  Result<> make_namespace(const std::string& name);
  /// One slice with devices for each node whose name begins so, as a driver of 1.36 publishes it.
  Result<> publish(const std::string& driver, const std::string& node_prefix, std::size_t devices);
  /// Gives devices to all claims of a namespace, spread over the nodes.
  Result<> allocate_claims(const std::string& name_space);

 private:
  BenchCluster& cluster_;
  std::string folder_;
  std::size_t window_;
  std::map<std::string, json::Value> served_;  // resource lists by group and version
};

}  // namespace dibs::bench
