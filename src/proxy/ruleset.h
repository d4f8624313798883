#pragma once
// The pieces of all Services as one nftables table, and what changed since it was written.
//
// Pure: it makes text, which somebody applies (nft.h) and then calls written(). Text is one
// transaction: the kernel takes all of it or nothing. Work and text are in proportion to what
// changed, not to what there is.
//
// Where two owners want the same element, the first by name has it until it goes.
//
// For one thread.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proxy/rules.h"

namespace dibs::proxy {

class Ruleset {
 public:
  explicit Ruleset(TableOptions options);

  /// Replaces what `owner` has; an empty piece takes it away.
  void put(const std::string& owner, Piece piece);
  /// The addresses of a node's pods.
  void put_pod(const std::string& node, const std::string& address);
  void remove_pod(const std::string& node, const std::string& address);

  /// Ranges of Services beside the machine's own: part of the frame, so whole() has to follow.
  void set_more_services(std::vector<Ipv4Range> ranges) {
    options_.machine.more_services = std::move(ranges);
  }

  bool changed() const;
  /// What to do since the last written(); for a table that is there.
  std::string difference() const;
  /// The table anew, in place of any that is there.
  std::string whole() const;
  void written();

  /// Backends that are gone since the last written(): of UDP, and those that home/… may still name.
  const std::set<UdpBackend>& gone_udp() const { return gone_udp_; }
  const std::map<std::string, std::set<std::string>>& gone_homes() const { return gone_homes_; }

  bool needs_pods() const { return by_node_ > 0; }
  const std::string& table() const { return options_.table; }

 private:
  using ElementKey = std::pair<std::string, std::string>;

  void put_element(const std::string& owner, const ElementKey& key, const std::string* value);
  const std::string* element_now(const ElementKey& key) const;
  void touch_chain(const std::string& name);

  TableOptions options_;
  std::map<std::string, Piece> pieces_;
  std::map<ElementKey, std::map<std::string, std::string>> elements_;  // by owner
  int by_node_ = 0;
  // As they were when last written; nothing: not there.
  std::map<ElementKey, std::optional<std::string>> old_elements_;
  std::map<std::string, std::optional<std::vector<std::string>>> old_chains_;
  std::map<std::string, bool> old_sets_;
  std::map<std::string, std::string> sets_;
  std::map<std::string, std::vector<std::string>> chains_;
  std::set<UdpBackend> gone_udp_;
  std::map<std::string, std::set<std::string>> gone_homes_;
  std::map<UdpBackend, int> udp_;
};

}  // namespace dibs::proxy
