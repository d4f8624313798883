// Links from a file, in the words of `ip -j -d address show`.

#include <algorithm>
#include <optional>
#include <set>

#include "base/interface_name.h"
#include "base/strings.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/host/links.h"
#include "drivers/net/model/field_reader.h"
#include "json/yaml.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

int hardware_type(const std::string& name) {
  if (name.empty() || name == "ether") return 1;
  if (name == "infiniband") return 32;
  if (name == "loopback") return 772;
  return 0;
}

LinkAddress read_address(const FieldReader& in) {
  LinkAddress address;
  const auto ip = Ip::parse(in.text("local"));
  if (!ip) {
    in.fail("local", ip.error().message());
    return address;
  }
  address.ip = ip->str();
  address.prefix = in.has("prefixlen") ? in.small_number("prefixlen") : ip->width();
  if (address.prefix > ip->width()) in.fail("prefixlen", cat("must be at most ", ip->width()));
  const std::string scope = in.text("scope");
  address.link_local = scope == "link" || scope == "host";
  return address;
}

Link read_link(const FieldReader& in, std::size_t place) {
  Link link;
  link.name = in.text("ifname");
  if (!is_interface_name(link.name)) in.fail("ifname", "must be the name of an interface");
  link.index = in.has("ifindex") ? in.small_number("ifindex") : static_cast<int>(place) + 1;
  link.hardware_type = hardware_type(in.text("link_type"));
  link.mac = to_lower(in.text("address"));
  link.mtu = in.small_number("mtu");
  link.oper_state = to_lower(in.text("operstate"));
  const auto flags = in.texts("flags");
  link.up = !in.has("flags") || std::find(flags.begin(), flags.end(), "UP") != flags.end();
  const FieldReader info = in.in("linkinfo");
  link.kind = info.text("info_kind");
  if (link.kind == "vlan") link.vlan_id = info.in("info_data").small_number("id");
  for (std::size_t i = 0; i < in.list("addr_info").size(); ++i) {
    link.addresses.push_back(read_address(in.item("addr_info", i)));
  }
  return link;
}

/// "link" and "master" are names; a link of another namespace has "link_index" instead.
void connect(LinkFacts& facts, const Value& list) {
  const auto index_of = [&](const Value& name) {
    for (const auto& link : facts.links) {
      if (name.is_string() && link.name == name.as_string()) return link.index;
    }
    return 0;
  };
  for (std::size_t i = 0; i < facts.links.size(); ++i) {
    facts.links[i].master = index_of(list[i]["master"]);
    if (facts.links[i].kind != "veth") facts.links[i].parent = index_of(list[i]["link"]);
  }
}

class RecordedLinks : public Links {
 public:
  RecordedLinks(runtime::Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  Result<LinkFacts> read() override {
    auto text = files_.read(path_);
    if (!text) return text.error().within(path_);
    auto facts = parse_recorded_links(*text);
    if (!facts) return facts.error().within(path_);
    last_ = *std::move(text);
    return facts;
  }

  bool changed() override {
    const auto text = files_.read(path_);
    return text && *text != last_;
  }

 private:
  runtime::Files& files_;
  const std::string path_;
  std::string last_;
};

}  // namespace

Result<LinkFacts> parse_recorded_links(std::string_view text) {
  const auto parsed = json::parse_yaml(text);
  if (!parsed) return Error::invalid(parsed.error().message());
  Value file = *parsed;
  if (file.is_array()) file = Value::object({{"links", *parsed}});
  std::optional<Error> error;
  const FieldReader in(file, "", error);
  LinkFacts facts;
  for (std::size_t i = 0; i < in.list("links").size(); ++i) {
    facts.links.push_back(read_link(in.item("links", i), i));
  }
  std::set<std::string> names;
  for (const auto& link : facts.links) {
    if (!names.insert(link.name).second) in.fail("links", cat("two are named ", quoted(link.name)));
  }
  facts.rdma_netns_mode = in.text("rdmaNetnsMode");
  const std::string& mode = facts.rdma_netns_mode;
  if (!mode.empty() && mode != "shared" && mode != "exclusive") {
    in.fail("rdmaNetnsMode", "must be shared or exclusive");
  }
  for (const auto& [key, value] : file.members()) {
    if (key != "links" && key != "rdmaNetnsMode") in.fail(key, "unknown key");
  }
  if (error) return *std::move(error);
  connect(facts, file["links"]);
  return facts;
}

std::unique_ptr<Links> recorded_links(runtime::Files& files, std::string path) {
  return std::make_unique<RecordedLinks>(files, std::move(path));
}

}  // namespace dibs::drivers::net
