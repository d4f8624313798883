#include "scheduler/extenders.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "client/client.h"
#include "json/parse.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// An extender gives a node 0 to 10; what a score of ours gives is ten times that.
constexpr std::int64_t kScale = 10;
/// Whatever extenders say, sums of scores stay numbers.
constexpr std::int64_t kMostSaid = std::int64_t{1} << 60;

/// Names of fields compare without case, as Go reads them: extenders write them in many ways.
const Value& field(const Value& object, std::string_view name) {
  if (const Value* exact = object.find(name)) return *exact;
  const std::string wanted = to_lower(name);
  for (const auto& [key, value] : object.members()) {
    if (to_lower(key) == wanted) return value;
  }
  return json::null_value();
}

bool wants_any(const Value& containers, const std::set<std::string, std::less<>>& resources) {
  for (const Value& container : containers.items()) {
    for (const char* list : {"requests", "limits"}) {
      for (const auto& [name, amount] : container["resources"][list].members()) {
        if (resources.contains(name)) return true;
      }
    }
  }
  return false;
}

bool is_interested(const ExtenderConfig& extender, const Pod& pod) {
  if (extender.resources.empty()) return true;
  const Value& spec = pod.object["spec"];
  return wants_any(spec["containers"], extender.resources) ||
         wants_any(spec["initContainers"], extender.resources);
}

Value nodes_body(const ExtenderConfig& extender, const Pod& pod, const std::vector<Value>& nodes) {
  Value list = Value::array();
  if (extender.knows_nodes) {
    for (const Value& node : nodes) list.push(node["metadata"]["name"]);
    return Value::object({{"Pod", pod.object}, {"Nodes", nullptr}, {"NodeNames", list}});
  }
  for (const Value& node : nodes) list.push(node);
  return Value::object(
      {{"Pod", pod.object},
       {"Nodes", Value::object({{"metadata", Value::object()}, {"items", std::move(list)}})},
       {"NodeNames", nullptr}});
}

Value victims_body(const ExtenderConfig& extender, const Pod& pod,
                   const std::vector<Victims>& options) {
  Value by_node = Value::object();
  for (const Victims& option : options) {
    Value pods = Value::array();
    for (const PodPtr& victim : option.pods) {
      pods.push(extender.knows_nodes ? Value::object({{"UID", victim->uid}}) : victim->object);
    }
    by_node.set(
        option.node,
        Value::object({{"Pods", std::move(pods)},
                       {"NumPDBViolations", static_cast<std::int64_t>(option.violations)}}));
  }
  Value body = Value::object(
      {{"Pod", pod.object}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", nullptr}});
  body.set(extender.knows_nodes ? "NodeNameToMetaVictims" : "NodeNameToVictims",
           std::move(by_node));
  return body;
}

/// The names of the nodes that are left.
Result<std::set<std::string>> read_left(const ExtenderConfig& extender, const Value& answer,
                                        const std::vector<Value>& asked) {
  if (const std::string told = field(answer, "Error").str(); !told.empty()) {
    return Error::bad_request(told);
  }
  std::set<std::string> left;
  const Value& names = field(answer, "NodeNames");
  if (!extender.knows_nodes || names.is_null()) {
    for (const Value& node : field(field(answer, "Nodes"), "items").items()) {
      left.insert(node["metadata"]["name"].str());
    }
    return left;
  }
  std::set<std::string_view> known;
  for (const Value& node : asked) known.insert(node["metadata"]["name"].as_string());
  for (const Value& name : names.items()) {
    if (!known.contains(name.as_string())) {
      return Error::bad_request(cat("extender ", quoted(extender.url), " claims a filtered node ",
                                    quoted(name.as_string()),
                                    " which is not found in the input node list"));
    }
    left.insert(name.str());
  }
  return left;
}

Opinion refusal(const Value& answer, std::string_view node) {
  Opinion made;
  made.refused = true;
  if (const Value* reason = field(answer, "FailedAndUnresolvableNodes").find(node)) {
    made.reason = reason->str();
  } else if (const Value* curable = field(answer, "FailedNodes").find(node)) {
    made.reason = curable->str();
    made.resolvable = true;
  }
  return made;
}

Result<std::vector<Victims>> read_victims(const ExtenderConfig& extender, const Value& answer,
                                          const Extenders::FindPod& find) {
  std::vector<Victims> made;
  for (const auto& [node, said] : field(answer, "NodeNameToMetaVictims").members()) {
    Victims option;
    option.node = std::string(node);
    option.violations = static_cast<std::size_t>(
        std::max<std::int64_t>(0, field(said, "NumPDBViolations").as_int()));
    for (const Value& victim : field(said, "Pods").items()) {
      const std::string uid = field(victim, "UID").str();
      PodPtr pod = find(option.node, uid);
      if (pod == nullptr) {
        return Error::bad_request(cat("extender: ", extender.url, " claims to preempt pod (UID: &{",
                                      uid, "}) on node: ", node,
                                      ", but the pod is not found on that node"));
      }
      option.pods.push_back(std::move(pod));
    }
    if (!option.pods.empty()) {
      made.push_back(std::move(option));
    } else if (!extender.ignorable) {
      return Error::bad_request(cat("expected at least one victim pod on node ", quoted(node)));
    }
  }
  return made;
}

void skipped(const ExtenderConfig& extender, const Error& error) {
  log::info("extender fails and is passed over", {{"extender", extender.url}, {"error", error}});
}

}  // namespace

struct Extenders::Asked {
  PodPtr pod;
  std::vector<Value> nodes;  // that are left
  Opinions made;
  std::size_t open = 0;  // calls that are not answered
  std::function<void(Opinions)> done;
};

struct Extenders::AskedVictims {
  PodPtr pod;
  std::vector<Victims> options;
  FindPod find;
  std::function<void(Result<std::vector<Victims>>)> done;
};

Extenders::Extenders(const std::vector<ExtenderConfig>& configs,
                     std::vector<std::shared_ptr<client::Transport>> ways, Post post)
    : configs_(configs), ways_(std::move(ways)), post_(std::move(post)) {}

bool Extenders::judge(const Pod& pod) const {
  return std::any_of(configs_.begin(), configs_.end(), [&](const ExtenderConfig& one) {
    return (!one.filter_verb.empty() || !one.prioritize_verb.empty()) && is_interested(one, pod);
  });
}

bool Extenders::judge_victims(const Pod& pod) const {
  return std::any_of(configs_.begin(), configs_.end(), [&](const ExtenderConfig& one) {
    return !one.preempt_verb.empty() && is_interested(one, pod);
  });
}

std::size_t Extenders::binder_of(const Pod& pod) const {
  const auto found = std::find_if(configs_.begin(), configs_.end(), [&](const ExtenderConfig& one) {
    return !one.bind_verb.empty() && is_interested(one, pod);
  });
  return static_cast<std::size_t>(found - configs_.begin());
}

void Extenders::call(std::size_t extender, const std::string& verb, const Value& body,
                     std::function<void(Result<Value>)> then) {
  client::Request request = client::make_request("POST", cat("/", verb), body);
  const std::string failed =
      cat("failed ", verb, " with extender at URL ", configs_[extender].url, "/", verb, ", code ");
  ways_[extender]->send_async(std::move(request), [post = post_, then = std::move(then),
                                                   failed](const Result<client::Response>& answer) {
    Result<Value> read = Error::unavailable("");
    if (!answer.ok()) {
      read = answer.error();
    } else if (answer->status != 200) {
      read = Error::bad_request(cat(failed, answer->status));
    } else {
      read = json::parse(answer->body);
    }
    post([then, read] { then(read); });
  });
}

void Extenders::ask(const PodPtr& pod, std::vector<Value> nodes,
                    std::function<void(Opinions)> done) {
  auto asked = std::make_shared<Asked>();
  asked->pod = pod;
  for (const Value& node : nodes) asked->made.nodes[node["metadata"]["name"].str()] = {};
  asked->nodes = std::move(nodes);
  asked->done = std::move(done);
  filter(asked, 0);
}

void Extenders::filter(const std::shared_ptr<Asked>& asked, std::size_t next) {
  while (next < configs_.size() &&
         (configs_[next].filter_verb.empty() || !is_interested(configs_[next], *asked->pod))) {
    ++next;
  }
  if (next == configs_.size() || asked->nodes.empty()) return prioritize(asked);
  const ExtenderConfig& extender = configs_[next];
  call(next, extender.filter_verb, nodes_body(extender, *asked->pod, asked->nodes),
       [this, asked, next](const Result<Value>& answer) {
         const ExtenderConfig& extender = configs_[next];
         auto left = answer.ok() ? read_left(extender, *answer, asked->nodes)
                                 : Result<std::set<std::string>>(answer.error());
         if (!left.ok()) {
           if (extender.ignorable) {
             skipped(extender, left.error());
             return filter(asked, next + 1);
           }
           asked->made.error = left.error().message();
           return asked->done(std::move(asked->made));
         }
         std::vector<Value> kept;
         for (Value& node : asked->nodes) {
           const std::string name = node["metadata"]["name"].str();
           if (left->contains(name)) {
             kept.push_back(std::move(node));
           } else {
             asked->made.nodes[name] = refusal(*answer, name);
           }
         }
         asked->nodes = std::move(kept);
         filter(asked, next + 1);
       });
}

void Extenders::prioritize(const std::shared_ptr<Asked>& asked) {
  // The only one needs no rank.
  for (std::size_t i = 0; i < configs_.size() && asked->nodes.size() > 1; ++i) {
    const ExtenderConfig& extender = configs_[i];
    if (extender.prioritize_verb.empty() || !is_interested(extender, *asked->pod)) continue;
    ++asked->open;
    call(i, extender.prioritize_verb, nodes_body(extender, *asked->pod, asked->nodes),
         [this, asked, i](const Result<Value>& answer) {
           if (!answer.ok()) skipped(configs_[i], answer.error());
           const Value list = answer.ok() ? *answer : Value();
           for (const Value& one : list.items()) {
             const auto node = asked->made.nodes.find(field(one, "Host").str());
             std::int64_t score = 0;
             if (node == asked->made.nodes.end() ||
                 __builtin_mul_overflow(field(one, "Score").as_int(), configs_[i].weight, &score) ||
                 __builtin_mul_overflow(score, kScale, &score) ||
                 __builtin_add_overflow(score, node->second.score, &score)) {
               continue;
             }
             node->second.score = std::clamp(score, -kMostSaid, kMostSaid);
           }
           if (--asked->open == 0) asked->done(std::move(asked->made));
         });
  }
  if (asked->open == 0) asked->done(std::move(asked->made));
}

void Extenders::ask_about_victims(const PodPtr& pod, std::vector<Victims> options, FindPod find,
                                  std::function<void(Result<std::vector<Victims>>)> done) {
  auto asked = std::make_shared<AskedVictims>();
  asked->pod = pod;
  asked->options = std::move(options);
  asked->find = std::move(find);
  asked->done = std::move(done);
  next_victims(asked, 0);
}

void Extenders::next_victims(const std::shared_ptr<AskedVictims>& asked, std::size_t next) {
  while (next < configs_.size() &&
         (configs_[next].preempt_verb.empty() || !is_interested(configs_[next], *asked->pod))) {
    ++next;
  }
  if (next == configs_.size() || asked->options.empty()) {
    return asked->done(std::move(asked->options));
  }
  const ExtenderConfig& extender = configs_[next];
  call(next, extender.preempt_verb, victims_body(extender, *asked->pod, asked->options),
       [this, asked, next](const Result<Value>& answer) {
         const ExtenderConfig& extender = configs_[next];
         auto left = answer.ok() ? read_victims(extender, *answer, asked->find)
                                 : Result<std::vector<Victims>>(answer.error());
         if (left.ok()) {
           asked->options = std::move(*left);
         } else if (extender.ignorable) {
           skipped(extender, left.error());
         } else {
           return asked->done(left.error());
         }
         next_victims(asked, next + 1);
       });
}

void Extenders::bind(const Pod& pod, const std::string& node,
                     std::function<void(Result<bool>)> done) {
  const std::size_t extender = binder_of(pod);
  const Value body = Value::object({{"PodName", pod.name},
                                    {"PodNamespace", pod.name_space},
                                    {"PodUID", pod.uid},
                                    {"Node", node}});
  call(extender, configs_[extender].bind_verb, body,
       [this, extender, done = std::move(done)](const Result<Value>& answer) {
         Result<bool> made = true;
         if (!answer.ok()) {
           made = answer.error();
         } else if (const std::string told = field(*answer, "Error").str(); !told.empty()) {
           made = Error::bad_request(told);
         }
         if (!made.ok() && configs_[extender].ignorable) {
           skipped(configs_[extender], made.error());
           made = false;
         }
         done(std::move(made));
       });
}

}  // namespace dibs::scheduler
