#include "proxy/ruleset.h"

#include "base/strings.h"

namespace dibs::proxy {
namespace {

/// Before all names of Services.
constexpr const char* kFrame = "";
constexpr std::size_t kGroup = 500;  // elements of one statement

std::string element_text(const std::string& key, const std::string& value) {
  return value.empty() ? key : cat(key, " : ", value);
}

/// Statements `add element …` and `delete element …`, some hundred elements each.
class Elements {
 public:
  Elements(const char* verb, const std::string& table) : verb_(verb), table_(table) {}

  void add(const std::string& set, std::string text) {
    auto& list = by_set_[set];
    list.push_back(std::move(text));
  }
  void append_to(std::string& out) const {
    for (const auto& [set, list] : by_set_) {
      for (std::size_t from = 0; from < list.size(); from += kGroup) {
        append(out, verb_, " element inet ", table_, ' ', set, " { ");
        for (std::size_t i = from; i < std::min(from + kGroup, list.size()); ++i) {
          append(out, i == from ? "" : ", ", list[i]);
        }
        append(out, " }\n");
      }
    }
  }

 private:
  const char* verb_;
  const std::string& table_;
  std::map<std::string, std::vector<std::string>> by_set_;
};

}  // namespace

Ruleset::Ruleset(TableOptions options) : options_(std::move(options)) {
  for (const auto& [key, value] : frame_elements(options_)) elements_[key][kFrame] = value;
}

const std::string* Ruleset::element_now(const ElementKey& key) const {
  const auto found = elements_.find(key);
  return found == elements_.end() ? nullptr : &found->second.begin()->second;
}

void Ruleset::put_element(const std::string& owner, const ElementKey& key,
                          const std::string* value) {
  if (!old_elements_.contains(key)) {
    const std::string* now = element_now(key);
    old_elements_[key] = now == nullptr ? std::nullopt : std::optional<std::string>(*now);
  }
  if (value != nullptr) {
    elements_[key][owner] = *value;
    return;
  }
  const auto found = elements_.find(key);
  if (found == elements_.end()) return;
  found->second.erase(owner);
  if (found->second.empty()) elements_.erase(found);
}

void Ruleset::touch_chain(const std::string& name) {
  if (old_chains_.contains(name)) return;
  const auto found = chains_.find(name);
  old_chains_[name] = found == chains_.end()
                          ? std::nullopt
                          : std::optional<std::vector<std::string>>(found->second);
}

void Ruleset::put(const std::string& owner, Piece piece) {
  const auto found = pieces_.find(owner);
  const Piece old = found == pieces_.end() ? Piece() : found->second;
  if (piece == old) return;
  for (const auto& [key, value] : old.elements) {
    if (!piece.elements.contains(key)) put_element(owner, key, nullptr);
  }
  for (const auto& [key, value] : piece.elements) {
    const auto before = old.elements.find(key);
    if (before == old.elements.end() || before->second != value) put_element(owner, key, &value);
  }
  for (const auto& [name, rules] : old.chains) {
    if (piece.chains.contains(name)) continue;
    touch_chain(name);
    chains_.erase(name);
  }
  for (const auto& [name, rules] : piece.chains) {
    const auto before = old.chains.find(name);
    if (before != old.chains.end() && before->second == rules) continue;
    touch_chain(name);
    chains_[name] = rules;
  }
  for (const auto& [name, text] : old.sets) {
    if (piece.sets.contains(name)) continue;
    old_sets_.try_emplace(name, true);
    sets_.erase(name);
  }
  for (const auto& [name, text] : piece.sets) {
    if (old.sets.contains(name)) continue;
    old_sets_.try_emplace(name, false);
    sets_[name] = text;
  }
  for (const auto& [home, backends] : old.homes) {
    const auto now = piece.homes.find(home);
    if (now == piece.homes.end()) continue;  // gone with its set
    for (const std::string& backend : backends) {
      if (!now->second.contains(backend)) gone_homes_[home].insert(backend);
    }
  }
  for (const auto& [home, backends] : piece.homes) {
    if (const auto gone = gone_homes_.find(home); gone != gone_homes_.end()) {
      for (const std::string& backend : backends) gone->second.erase(backend);
    }
  }
  for (const UdpBackend& backend : piece.udp) {
    ++udp_[backend];
    gone_udp_.erase(backend);
  }
  for (const UdpBackend& backend : old.udp) {
    if (--udp_[backend] > 0) continue;
    udp_.erase(backend);
    gone_udp_.insert(backend);
  }
  by_node_ += (piece.by_node ? 1 : 0) - (old.by_node ? 1 : 0);
  if (piece == Piece()) {
    pieces_.erase(owner);
  } else {
    pieces_[owner] = std::move(piece);
  }
}

void Ruleset::put_pod(const std::string& node, const std::string& address) {
  static const std::string nothing;
  put_element(kFrame, {pods_set(node), address}, &nothing);
}

void Ruleset::remove_pod(const std::string& node, const std::string& address) {
  put_element(kFrame, {pods_set(node), address}, nullptr);
}

bool Ruleset::changed() const {
  return !old_elements_.empty() || !old_chains_.empty() || !old_sets_.empty();
}

std::string Ruleset::difference() const {
  const std::string& table = options_.table;
  std::string out;
  std::string flushes;
  std::string deletions;
  std::string rules;
  for (const auto& [name, was_there] : old_sets_) {
    const auto now = sets_.find(name);
    if (now != sets_.end() && !was_there) {
      // "map NAME { … }" -> "add map inet TABLE NAME { … }"
      const auto blank = now->second.find(' ');
      append(out, "add ", now->second.substr(0, blank), " inet ", table, now->second.substr(blank),
             '\n');
    }
  }
  for (const auto& [name, before] : old_chains_) {
    const auto now = chains_.find(name);
    if (now == chains_.end()) {
      if (!before) continue;
      append(flushes, "flush chain inet ", table, ' ', name, '\n');
      append(deletions, "delete chain inet ", table, ' ', name, '\n');
      continue;
    }
    if (before && *before == now->second) continue;
    append(out, "add chain inet ", table, ' ', name, '\n');
    if (before) append(rules, "flush chain inet ", table, ' ', name, '\n');
    for (const std::string& rule : now->second) {
      append(rules, "add rule inet ", table, ' ', name, ' ', rule, '\n');
    }
  }
  Elements removed("delete", table);
  Elements added("add", table);
  for (const auto& [key, before] : old_elements_) {
    const std::string* now = element_now(key);
    if (before && now != nullptr && *before == *now) continue;
    if (before) removed.add(key.first, key.second);
    if (now != nullptr) added.add(key.first, element_text(key.second, *now));
  }
  append(out, rules);
  removed.append_to(out);
  added.append_to(out);
  append(out, flushes, deletions);
  for (const auto& [name, was_there] : old_sets_) {
    if (!was_there || sets_.contains(name)) continue;
    append(out, "delete ", name.starts_with("home/") ? "map" : "set", " inet ", table, ' ', name,
           '\n');
  }
  return out;
}

std::string Ruleset::whole() const {
  const std::string& table = options_.table;
  // So that it can be deleted whether it was there or not.
  std::string out = cat("add table inet ", table, "\ndelete table inet ", table, "\ntable inet ",
                        table, " {\n", table_frame(options_));
  for (const auto& [name, text] : sets_) append(out, text, '\n');
  for (const auto& [name, rules] : chains_) append(out, "chain ", name, " { }\n");
  append(out, "}\n");
  for (const auto& [name, rules] : chains_) {
    for (const std::string& rule : rules) {
      append(out, "add rule inet ", table, ' ', name, ' ', rule, '\n');
    }
  }
  Elements added("add", table);
  for (const auto& [key, owners] : elements_) {
    added.add(key.first, element_text(key.second, owners.begin()->second));
  }
  added.append_to(out);
  return out;
}

void Ruleset::written() {
  old_elements_.clear();
  old_chains_.clear();
  old_sets_.clear();
  gone_udp_.clear();
  gone_homes_.clear();
}

}  // namespace dibs::proxy
