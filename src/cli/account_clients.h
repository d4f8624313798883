#pragma once
// Clients that speak as service accounts of kube-system, each with a token of its own that is
// renewed in time: `dibs controllers --use-service-account-credentials`.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::cli {

class AccountClients {
 public:
  /// `root` may create service accounts and their tokens; accounts that are missing are made. It,
  /// `files` and `runtime` must outlive this. `access`: how `root` reaches the server. Waits for
  /// the server. Errors name the account.
  static Result<std::unique_ptr<AccountClients>> open(client::Client& root, client::Access access,
                                                      runtime::Files& files,
                                                      runtime::Runtime& runtime,
                                                      const std::vector<std::string>& accounts);
  ~AccountClients();

  std::map<std::string, client::Client*, std::less<>> clients() const;

 private:
  struct Account;
  AccountClients() = default;
  std::map<std::string, std::shared_ptr<Account>, std::less<>> accounts_;
};

}  // namespace dibs::cli
