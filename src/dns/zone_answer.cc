// What the zone answers: zone.cc has what it knows.

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "client/client.h"
#include "dns/zone.h"

namespace dibs::dns {

namespace {

std::string service_key(std::string_view name_space, std::string_view service) {
  return client::key_of(name_space, service);
}

/// "_tcp" without its mark; "" for anything else.
std::string_view marked(std::string_view label) {
  return label.size() > 1 && label.front() == '_' ? label.substr(1) : std::string_view();
}

bool is_protocol(std::string_view text) { return text == "tcp" || text == "udp" || text == "sctp"; }

}  // namespace

/// A question, and the answer that becomes of it.
struct Zone::Asked {
  const Question& question;
  const std::size_t most;  // records
  Answer answer = {};
  bool exists = false;  // the name; else there is nothing below it, either
  std::set<std::string> seen = {};

  bool wants(std::uint16_t type) const {
    return question.type == type || question.type == dns::type::any;
  }
  void add(std::uint16_t type, std::string data) {
    exists = true;
    if (!wants(type) || full() || !seen.insert(data).second) return;
    answer.answers.push_back({question.name, type, kInternet, kTtl, std::move(data)});
  }
  bool full() const { return answer.answers.size() >= most; }
  void add_address(const std::string& bytes) { add(type_of(bytes), bytes); }
  static std::uint16_t type_of(const std::string& bytes) {
    return bytes.size() == 4 ? type::a : type::aaaa;
  }
  void add_server(std::uint16_t weight, std::uint16_t port, const Name& target,
                  const std::vector<std::string>& addresses) {
    const std::size_t before = answer.answers.size();
    add(type::srv, srv_data(0, weight, port, target));
    if (answer.answers.size() == before) return;
    for (const auto& address : addresses) {
      // Two ports of one endpoint have the same address.
      if (!seen.insert(target.wire() + address).second) continue;
      answer.additional.push_back({target, type_of(address), kInternet, kTtl, address});
    }
  }
};

std::optional<Answer> Zone::answer(const Question& question, std::size_t most) const {
  const Name name = question.name.lower();
  Asked asked{question, most};
  const bool ours = name.is_within(domain_);
  const auto reverse = ours ? std::nullopt : reverse_address(name);
  if (!ours && !reverse) return std::nullopt;
  {
    const MutexLock lock(mutex_);
    if (ours) {
      auto labels = name.labels();
      labels.resize(labels.size() - domain_labels_);
      if (complete_) answer_name(asked, std::move(labels));
    } else {
      if (!reverse->whole) return std::nullopt;
      if (complete_) answer_reverse(asked, reverse->bytes);
      const bool in_range =
          std::any_of(options_.ranges.begin(), options_.ranges.end(),
                      [&](const Range& range) { return range.contains(reverse->bytes); });
      if (!in_range && !asked.exists) return std::nullopt;
    }
    if (!complete_) {
      asked.answer.rcode = Rcode::server_failure;
      return std::move(asked.answer);
    }
  }
  if (asked.answer.answers.empty()) {
    asked.answer.rcode = asked.exists ? Rcode::no_error : Rcode::name_error;
    if (ours) asked.answer.authority.push_back(start_of_authority());
  }
  return std::move(asked.answer);
}

void Zone::answer_name(Asked& asked, std::vector<std::string_view> labels) const {
  if (labels.empty()) return answer_apex(asked);
  const std::string_view top = labels.back();
  labels.pop_back();
  if (top == "svc") return answer_service(asked, labels);
  if (top == "pod") return answer_pod(asked, labels);
  if (top == "dns-version" && labels.empty()) return asked.add(type::txt, txt_data("1.1.0"));
  if (top != "dns") return;
  if (labels.empty()) asked.exists = true;
  if (labels.size() == 1 && labels.front() == "ns") answer_server(asked);
}

void Zone::answer_apex(Asked& asked) const {
  asked.add(type::soa, start_of_authority().data);
  asked.add(type::ns, server_.wire());
  if (!asked.wants(type::ns)) return;
  for (const auto& address : server_addresses_) {
    asked.answer.additional.push_back({server_, Asked::type_of(address), kInternet, kTtl, address});
  }
}

void Zone::answer_server(Asked& asked) const {
  asked.exists = true;
  for (const auto& address : server_addresses_) asked.add_address(address);
}

void Zone::answer_service(Asked& asked, const std::vector<std::string_view>& labels) const {
  const std::size_t depth = labels.size();
  if (depth <= 1) {
    asked.exists = depth == 0 || namespaces_.contains(labels[0]);
    return;
  }
  if (!namespaces_.contains(labels[depth - 1])) return;
  const std::string key = service_key(labels[depth - 1], labels[depth - 2]);
  if (depth == 2) return answer_backends(asked, key, "");
  if (depth == 4 && !marked(labels[0]).empty()) {
    return answer_ports(asked, key, marked(labels[0]), marked(labels[1]));
  }
  if (depth != 3) return;
  if (labels[0].front() == '_') return answer_ports(asked, key, "", marked(labels[0]));
  answer_backends(asked, key, labels[0]);
}

void Zone::answer_backends(Asked& asked, const std::string& key, std::string_view endpoint) const {
  const auto found = find(key);
  if (!found) return;
  const Service& service = *found->service;
  if (!service.external.empty()) {
    if (!endpoint.empty()) return;
    asked.exists = true;
    const auto target = Name::from_text(service.external);
    if (!target) return;
    // An alias answers whatever is asked.
    asked.answer.answers.push_back(
        {asked.question.name, type::cname, kInternet, kTtl, target->wire()});
    if (!asked.wants(type::cname)) asked.answer.alias = *target;
    return;
  }
  if (endpoint.empty() && !service.addresses.empty()) {
    asked.exists = true;
    for (const auto& address : service.addresses) asked.add_address(address);
    return;
  }
  for (const auto& [slice_key, slice] : *found->slices) {
    for (const auto& one : slice.endpoints) {
      if (!one.ready && !service.publish_not_ready) continue;
      for (const auto& address : one.addresses) {
        const bool named =
            one.hostname.empty() ? address_label(address) == endpoint : one.hostname == endpoint;
        if (endpoint.empty() || named) asked.add_address(address);
      }
    }
  }
}

void Zone::answer_ports(Asked& asked, const std::string& key, std::string_view port,
                        std::string_view protocol) const {
  const auto found = find(key);
  if (!found || !found->service->external.empty() || !is_protocol(protocol)) return;
  if (found->service->addresses.empty()) {
    return answer_headless_ports(asked, key, *found, port, protocol);
  }
  for (const auto& one : found->service->ports) {
    if (one.name.empty() || one.protocol != protocol) continue;
    if (port.empty()) asked.exists = true;  // something is below
    if (one.name == port) {
      asked.add_server(100, one.number, name_of(key), found->service->addresses);
    }
  }
}

void Zone::answer_headless_ports(Asked& asked, const std::string& key, const Backends& backends,
                                 std::string_view port, std::string_view protocol) const {
  for (const auto& [slice_key, slice] : *backends.slices) {
    for (const auto& one : slice.ports) {
      if (one.name.empty() || one.protocol != protocol) continue;
      if (!port.empty() && one.name != port) continue;
      for (const auto& endpoint : slice.endpoints) {
        if (!endpoint.ready && !backends.service->publish_not_ready) continue;
        asked.exists = true;
        if (port.empty() || asked.full()) return;
        for (const auto& address : endpoint.addresses) {
          const std::string label =
              endpoint.hostname.empty() ? address_label(address) : endpoint.hostname;
          asked.add_server(100, one.number, name_of(key, label), {address});
        }
      }
    }
  }
}

void Zone::answer_pod(Asked& asked, const std::vector<std::string_view>& labels) const {
  if (labels.empty()) {
    asked.exists = true;
    return;
  }
  if (labels.size() > 2 || !namespaces_.contains(labels.back())) return;
  if (labels.size() == 1) {
    asked.exists = true;
  } else if (const auto address = label_address(labels[0])) {
    asked.add_address(*address);
  }
}

void Zone::answer_reverse(Asked& asked, const std::string& address) const {
  if (const auto found = service_addresses_.find(address); found != service_addresses_.end()) {
    for (const auto& key : found->second) asked.add(type::ptr, name_of(key).wire());
    return;
  }
  const auto found = endpoint_addresses_.find(address);
  if (found == endpoint_addresses_.end()) return;
  std::vector<std::string> nameless;
  for (const auto& [key, slice_key] : found->second) {
    const auto backends = find(key);
    if (!backends) continue;
    for (const auto& endpoint : backends->slices->at(slice_key).endpoints) {
      if (!endpoint.ready && !backends->service->publish_not_ready) continue;
      const auto& all = endpoint.addresses;
      if (std::find(all.begin(), all.end(), address) == all.end()) continue;
      if (!endpoint.hostname.empty()) {
        asked.add(type::ptr, name_of(key, endpoint.hostname).wire());
      } else if (backends->service->addresses.empty()) {
        nameless.push_back(name_of(key, address_label(address)).wire());
      }
    }
  }
  // A name that somebody gave says more.
  if (asked.exists) return;
  for (auto& name : nameless) asked.add(type::ptr, std::move(name));
}

Name Zone::name_of(const std::string& key, std::string_view endpoint) const {
  const auto [name_space, service] = client::split_key(key);
  const std::string text = cat(endpoint, endpoint.empty() ? "" : ".", service, '.', name_space,
                               ".svc.", options_.domain);
  return Name::from_text(text).value_or(domain_);
}

Record Zone::start_of_authority() const {
  const auto mailbox = domain_.below("hostmaster");
  return {domain_, type::soa, kInternet, kTtl,
          soa_data(server_, mailbox ? *mailbox : domain_, 1, kTtl)};
}

}  // namespace dibs::dns
