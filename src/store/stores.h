#pragma once
// The stores that a cluster can be kept in: one line in the table of stores.cc each. The suites of
// contract_test.cc and watch_contract_test.cc run over all of them.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/at_rest.h"
#include "store/mvcc.h"
#include "store/store.h"

namespace dibs::store {

/// Where an etcd is, and as whom it is met.
struct EtcdOptions {
  std::vector<std::string> endpoints = {};  // "https://host:port"; http without TLS
  std::string ca_file = {};                 // "": the machine's authorities
  std::string certificate_file = {};
  std::string key_file = {};
  std::string user = {};
  std::string password = {};
  /// What stands for "/registry" in its keys. What Kubernetes has no place for is kept under
  /// prefix + ".dibs/" ("/registry.dibs/" here).
  std::string prefix = "/registry";
  /// Takes part in compacting it, as kube-apiserver does; false: somebody else sees to that.
  bool compacts = true;
  /// Writes values anew that are not encrypted as they would be today; false: changes nothing.
  bool rewrites = true;
};

/// What every store is opened with; what it has no use for, it leaves.
struct StoreOptions {
  std::string folder = {};  // there, and nobody else's
  /// Of an empty store. High, so that a version is not taken for a small number of another kind.
  Revision first_revision = 1000;
  std::size_t max_transaction_bytes = std::size_t{8} << 20;
  HistoryLimits history = {};
  /// Of what is on a disk; null: values as they are.
  std::shared_ptr<const AtRest> at_rest = {};
  EtcdOptions etcd = {};
};

struct StoreKind {
  std::string_view name;  // in --store
  std::string_view description;
  /// What was committed is there again when the folder is opened again.
  bool durable;
  /// It lies elsewhere, where StoreOptions::etcd says: tests need an etcd for it. Its revisions are
  /// not ours to choose, and others may write to it.
  bool remote;
  /// Of one transaction.
  std::size_t max_ops;
  Result<std::unique_ptr<Store>> (*open)(const StoreOptions& options);
};

std::span<const StoreKind> store_kinds();

/// Errors: of the store; bad_request names the stores there are.
Result<std::unique_ptr<Store>> open_store(std::string_view name, const StoreOptions& options);

}  // namespace dibs::store
