#pragma once
// As much of nftables as the proxy's statements need: takes transactions, whole or not at all, and
// says what becomes of a packet. For tests; strict where the kernel is.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ipv4.h"
#include "base/result.h"
#include "base/strings.h"
#include "proxy/machine.h"

namespace dibs::proxy::test {

struct Packet {
  std::string source;
  std::string destination;
  std::string protocol = "tcp";
  int port = 80;
  bool own = false;           // of the machine itself
  bool source_local = false;  // its addresses are the machine's
  bool destination_local = false;
};

/// Where a packet may end: "10.1.0.5:80", with " masqueraded" where it is; "drop"; "pass".
using Ends = std::set<std::string>;

class Kernel : public Applier {
 public:
  struct Set {
    bool map = false;
    std::map<std::string, std::string> elements;
    friend bool operator==(const Set&, const Set&) = default;
  };
  struct Table {
    std::map<std::string, Set> sets;
    std::map<std::string, std::vector<std::string>> chains;
    friend bool operator==(const Table&, const Table&) = default;
  };

  Result<> apply(const std::string& statements) override {
    ++transactions;
    last = statements;
    if (!fail_with.empty()) return Error::internal(fail_with);
    const auto before = tables;
    for (auto done = apply_lines(statements); !done.ok();) {
      tables = before;
      return done;
    }
    return success();
  }
  Result<std::map<std::string, std::string>> homes(const std::string& table,
                                                   const std::string& map) override {
    return tables[table].sets[map].elements;
  }
  Result<> forget_udp(const std::set<UdpBackend>& gone) override {
    forgotten.insert(gone.begin(), gone.end());
    return success();
  }
  Result<> open_loopback(const std::string&) override { return success(); }
  Result<> keep_routes(const std::string&, const std::set<std::string>& ranges) override {
    if (routes_fail) return Error::internal("ip: no");
    routes = ranges;
    return success();
  }

  Result<bool> leads_away(const std::string& address) override {
    return address.starts_with("10.140.") && !far_routes;
  }

  Ends send(const std::string& table, const Packet& packet) const {
    Ends out;
    run(tables.at(table), packet.own ? "output" : "prerouting", packet, false, out);
    return out;
  }

  std::map<std::string, Table> tables;
  std::set<UdpBackend> forgotten;
  int transactions = 0;
  std::string last;
  std::set<std::string> routes;
  bool routes_fail = false;
  bool far_routes = false;  // to 10.140.0.0/16, the pods of another machine
  std::string fail_with;

 private:
  using Words = std::vector<std::string>;

  static Words words_of(std::string_view line) {
    Words out;
    for (const auto word : split(line, ' ')) {
      if (!trim(word).empty()) out.emplace_back(trim(word));
    }
    return out;
  }
  static std::string rest_of(const Words& words, std::size_t from) {
    return join(Words(words.begin() + static_cast<std::ptrdiff_t>(from), words.end()), " ");
  }

  Result<> apply_lines(const std::string& statements) {
    std::string table;  // inside of its block
    std::string chain;
    for (const auto raw : split(statements, '\n')) {
      const Words words = words_of(raw);
      if (words.empty()) continue;
      if (!chain.empty()) {
        if (words[0] == "}") {
          chain.clear();
        } else if (words[0] != "type") {
          tables[table].chains[chain].push_back(rest_of(words, 0));
        }
      } else if (!table.empty()) {
        if (words[0] == "}") {
          table.clear();
        } else if (words[0] == "chain") {
          tables[table].chains[words[1]];
          if (words.back() != "}") chain = words[1];
        } else {
          tables[table].sets[words[1]].map = words[0] == "map";
        }
      } else if (words[0] == "table") {
        table = words[2];
        tables[table];
      } else {
        DIBS_CHECK(apply_statement(words));
      }
    }
    return check_references();
  }

  Result<> apply_statement(const Words& words) {
    const std::string verb = cat(words[0], ' ', words[1]);
    if (verb == "create table" && tables.contains(words[3])) return Error::internal("File exists");
    if (verb == "create table" || verb == "add table") return tables[words[3]], success();
    if (!tables.contains(words[3])) return Error::internal(cat("no table: ", rest_of(words, 0)));
    if (verb == "delete table") return tables.erase(words[3]), success();
    Table& table = tables[words[3]];
    const std::string& name = words[4];
    const auto missing = [&] { return Error::internal(cat("missing: ", rest_of(words, 0))); };
    if (verb == "add chain") return table.chains[name], success();
    if (verb == "add set" || verb == "add map") {
      table.sets[name].map = verb == "add map";
      return success();
    }
    if (verb == "add rule" || verb == "flush chain" || verb == "delete chain") {
      if (!table.chains.contains(name)) return missing();
      if (verb == "add rule") table.chains[name].push_back(rest_of(words, 5));
      if (verb == "flush chain") table.chains[name].clear();
      if (verb == "delete chain" && !table.chains[name].empty())
        return Error::internal("not empty");
      if (verb == "delete chain") table.chains.erase(name);
      return success();
    }
    if (!table.sets.contains(name)) return missing();
    if (verb == "delete set" || verb == "delete map") {
      if (table.sets[name].map != (verb == "delete map")) return missing();
      return table.sets.erase(name), success();
    }
    if (verb != "add element" && verb != "delete element") return missing();
    auto& elements = table.sets[name].elements;
    const std::string list = rest_of(Words(words.begin(), words.end() - 1), 6);
    for (const auto item : split(list, ',')) {
      const auto colon = item.find(" : ");
      const std::string key(trim(item.substr(0, colon)));
      const std::string value(colon == item.npos ? "" : trim(item.substr(colon + 3)));
      if (verb == "delete element") {
        if (elements.erase(key) == 0) return Error::internal(cat("no element ", key));
      } else if (auto [at, added] = elements.emplace(key, value); !added && at->second != value) {
        return Error::internal(cat("element exists: ", key));
      }
    }
    return success();
  }

  Result<> check_references() const {
    for (const auto& one : tables) {
      const Table& table = one.second;
      const auto check = [&](const std::string& text) -> Result<> {
        const Words words = words_of(text);
        for (std::size_t i = 0; i < words.size(); ++i) {
          std::string word = words[i];
          while (!word.empty() && (word.back() == ',' || word.back() == ';')) word.pop_back();
          if (word.starts_with('@') && !table.sets.contains(word.substr(1))) {
            return Error::internal(cat("no set: ", text));
          }
          if (i > 0 && (words[i - 1] == "goto" || words[i - 1] == "jump") &&
              !table.chains.contains(word)) {
            return Error::internal(cat("no chain: ", text));
          }
        }
        return success();
      };
      for (const auto& [name, rules] : table.chains) {
        for (const std::string& rule : rules) DIBS_CHECK(check(rule));
      }
      for (const auto& [name, set] : table.sets) {
        for (const auto& [key, value] : set.elements) DIBS_CHECK(check(value));
      }
    }
    return success();
  }

  static bool in(const std::string& address, const std::string& range) {
    const auto parsed = Ipv4Range::parse(range);
    return parsed.ok() && parsed->contains(*parse_ipv4(address));
  }

  /// True: the packet is done with. False: it goes on behind the chain.
  bool run(const Table& table, const std::string& chain, const Packet& packet, bool mark, Ends& out,
           bool* mark_out = nullptr) const {
    const bool base = chain == "output" || chain == "prerouting";
    for (const std::string& rule : table.chains.at(chain)) {
      if (step(table, words_of(rule), packet, mark, out)) return true;
      if (returned_) {
        returned_ = false;
        break;
      }
    }
    if (mark_out != nullptr) *mark_out = mark;
    if (base) out.insert("pass");
    return false;
  }

  bool go(const Table& table, const std::string& verdict, const Packet& packet, bool& mark,
          Ends& out) const {
    const Words words = words_of(verdict);
    if (run(table, words[1], packet, mark, out, &mark)) return true;
    // What was gone to does not come back: the caller's chain is over, too.
    if (words[0] == "goto") returned_ = true;
    return false;
  }

  bool end(std::string to, bool mark, Ends& out) const {
    while (!to.empty() && (to.back() == ',' || to.back() == ' ')) to.pop_back();
    if (const auto dot = to.find(" . "); dot != to.npos) to.replace(dot, 3, ":");
    out.insert(mark ? to + " masqueraded" : to);
    return true;
  }

  bool step(const Table& table, Words words, const Packet& packet, bool& mark, Ends& out) const {
    const auto drop_words = [&](std::size_t count) {
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    };
    while (!words.empty()) {
      const std::string text = rest_of(words, 0);
      const auto is = [&](const char* head) { return text.starts_with(head); };
      if (is("ip daddr . meta l4proto . th dport vmap @") || is("meta l4proto . th dport vmap @")) {
        const std::string key =
            is("ip daddr") ? cat(packet.destination, " . ", packet.protocol, " . ", packet.port)
                           : cat(packet.protocol, " . ", packet.port);
        const auto& elements = table.sets.at(words.back().substr(1)).elements;
        const auto found = elements.find(key);
        return found != elements.end() && go(table, found->second, packet, mark, out);
      }
      if (is("ip daddr ") || is("ip saddr ")) {
        const std::string& address = words[1] == "daddr" ? packet.destination : packet.source;
        const bool negated = words[2] == "!=";
        if (negated) words.erase(words.begin() + 2);
        bool match = false;
        if (words[2] == "{") {
          std::size_t i = 3;
          for (; words[i] != "}"; ++i) {
            std::string range = words[i];
            if (range.ends_with(',')) range.pop_back();
            match = match || in(address, range);
          }
          drop_words(i + 1);
        } else {
          match = words[2].starts_with('@')
                      ? table.sets.at(words[2].substr(1)).elements.contains(address)
                      : in(address, words[2]);
          drop_words(3);
        }
        if (match == negated) return false;
      } else if (is("fib ")) {
        if (!(words[1] == "saddr" ? packet.source_local : packet.destination_local)) return false;
        drop_words(4);
      } else if (is("meta l4proto { tcp, udp }")) {
        drop_words(6);
      } else if (is("meta l4proto ")) {
        if (words[2] != packet.protocol) return false;
        drop_words(3);
      } else if (is("meta mark set")) {
        mark = true;
        drop_words(7);
      } else if (is("dnat ip to ip saddr map @")) {
        const auto& homes = table.sets.at(words.back().substr(1)).elements;
        const auto found = homes.find(packet.source);
        return found != homes.end() && end(found->second, mark, out);
      } else if (is("dnat ip to numgen") || is("numgen")) {
        const auto open = text.find("{ ");
        const std::string list = text.substr(open + 2, text.size() - open - 4);
        for (const auto item : split(list, ',')) {
          const std::string value(trim(item.substr(item.find(" : ") + 3)));
          bool branch = mark;
          if (is("dnat")) {
            end(value, mark, out);
          } else {
            go(table, value, packet, branch, out);
          }
        }
        return true;
      } else if (is("dnat ip to ")) {
        return end(words[3], mark, out);
      } else if (is("goto ") || is("jump ")) {
        return go(table, text, packet, mark, out);
      } else if (is("return")) {
        returned_ = true;
        return false;
      } else if (is("drop")) {
        return end("drop", false, out);
      } else if (is("update @") || is("delete @")) {
        return false;
      } else {
        return end(cat("what is: ", text), false, out);
      }
    }
    return false;
  }

  mutable bool returned_ = false;
};

}  // namespace dibs::proxy::test
