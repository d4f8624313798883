#include "server/auth/rbac.h"

#include <algorithm>

#include "api/kinds/metadata.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::server::auth {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::size_t kMostAnswers = 4096;

/// What a decision that holds for every name depends on. Each part is told with its length: paths
/// and names may hold any character.
std::string question_of(const RequestAttributes& what) {
  std::string key;
  key.reserve(256);
  auto add = [&key](const std::string& part) { append(key, part.size(), ':', part); };
  add(what.verb);
  add(what.group);
  add(what.resource);
  add(what.subresource);
  add(what.user.name);
  for (const std::string& group : what.user.groups) add(group);
  return key;
}

bool is_role(std::string_view kind) { return kind == "Role" || kind == "ClusterRole"; }
bool is_binding(std::string_view kind) {
  return kind == "RoleBinding" || kind == "ClusterRoleBinding";
}

std::string subject_key(std::string_view kind, std::string_view name) {
  return cat(kind == "Group" ? "group:" : "user:", name);
}

/// One fault alone, several in brackets; each once.
std::string faults_text(const std::vector<std::string>& faults) {
  std::vector<std::string> unique;
  for (const std::string& fault : faults) {
    if (std::find(unique.begin(), unique.end(), fault) == unique.end()) unique.push_back(fault);
  }
  if (unique.size() == 1) return unique[0];
  return cat("[", join(unique, ", "), "]");
}

}  // namespace

std::string account_user_name(std::string_view name_space, std::string_view name) {
  return cat("system:serviceaccount:", name_space, ":", name);
}

void Rbac::upsert(const Value& object) {
  const Value& metadata = object["metadata"];
  Key key{metadata["namespace"].str(), metadata["name"].str()};
  std::string_view kind = object["kind"].as_string();
  if (!is_role(kind) && !is_binding(kind)) return;
  const WriterLock lock(mutex_);
  forget_answers();
  if (is_role(kind)) {
    if (kind == "ClusterRole") key.first.clear();
    put_role(kind == "ClusterRole", key, object);
  } else {
    if (kind == "ClusterRoleBinding") key.first.clear();
    put_binding(key, object);
  }
}

void Rbac::remove(std::string_view kind, std::string_view name_space, std::string_view name) {
  if (!is_role(kind) && !is_binding(kind)) return;
  bool is_cluster = kind == "ClusterRole" || kind == "ClusterRoleBinding";
  Key key{is_cluster ? std::string() : std::string(name_space), std::string(name)};
  const WriterLock lock(mutex_);
  forget_answers();
  if (is_role(kind)) {
    roles_.erase(key);
    if (is_cluster) aggregate();
  } else {
    drop_binding(key);
  }
}

void Rbac::put_role(bool is_cluster, const Key& key, const Value& object) {
  auto role = std::make_shared<Role>();
  role->rules = rules_of(object);
  role->raw = object["rules"];
  if (is_cluster) {
    role->labels = object["metadata"]["labels"];
    role->selectors = object["aggregationRule"]["clusterRoleSelectors"];
  }
  roles_[key] = std::move(role);
  if (is_cluster) aggregate();
}

void Rbac::aggregate() {
  std::map<std::string, RolePtr> aggregated;
  std::map<std::string, std::set<std::string>> texts;  // of the rules of each
  for (const auto& [key, role] : roles_) {
    if (!key.first.empty() || role->selectors.empty()) continue;
    auto sum = std::make_shared<Role>();
    sum->raw = Value::array();
    std::set<std::string>& known = texts[key.second];
    for (const auto& [other_key, other] : roles_) {
      // Aggregates among the parts are gathered below; what they were last written with does not
      // count.
      if (!other_key.first.empty() || !other->selectors.empty()) continue;
      bool selected = false;
      for (const Value& selector : role->selectors.items()) {
        selected = selected || api::label_selector_matches(selector, other->labels);
      }
      if (!selected) continue;
      for (const Value& rule : other->raw.items()) {
        if (!known.insert(json::write(rule)).second) continue;
        sum->raw.push(rule);
        sum->rules.push_back(rule_of(rule));
      }
    }
    aggregated[key.second] = std::move(sum);
  }
  // Aggregates of aggregates ("edit" is a part of "admin"): go round until nothing is added.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [name, role] : aggregated) {
      const Value& selectors = roles_.at({"", name})->selectors;
      for (const auto& [other_name, other] : aggregated) {
        if (other_name == name) continue;
        const Value& labels = roles_.at({"", other_name})->labels;
        bool selected = false;
        for (const Value& selector : selectors.items()) {
          selected = selected || api::label_selector_matches(selector, labels);
        }
        if (!selected) continue;
        std::shared_ptr<Role> more;
        for (std::size_t i = 0; i < other->rules.size(); ++i) {
          if (!texts[name].insert(json::write(other->raw[i])).second) continue;
          if (!more) more = std::make_shared<Role>(*role);
          more->rules.push_back(other->rules[i]);
          more->raw.push(other->raw[i]);
        }
        if (more) {
          role = std::move(more);
          changed = true;
        }
      }
    }
  }
  aggregated_ = std::move(aggregated);
}

void Rbac::put_binding(const Key& key, const Value& object) {
  drop_binding(key);
  auto binding = std::make_shared<Binding>();
  binding->name_space = key.first;
  binding->name = key.second;
  binding->to_cluster_role = object["roleRef"]["kind"].as_string() != "Role";
  binding->role = object["roleRef"]["name"].str();
  for (const Value& subject : object["subjects"].items()) {
    Subject made{subject["kind"].str(), subject["name"].str(), subject["namespace"].str()};
    if (made.kind == "ServiceAccount" && made.name_space.empty()) made.name_space = key.first;
    std::string name =
        made.kind == "ServiceAccount" ? account_user_name(made.name_space, made.name) : made.name;
    by_subject_[subject_key(made.kind, name)][key.first].insert(key.second);
    binding->subjects.push_back(std::move(made));
  }
  bindings_[key] = std::move(binding);
}

void Rbac::drop_binding(const Key& key) {
  auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  for (const Subject& subject : found->second->subjects) {
    std::string name = subject.kind == "ServiceAccount"
                           ? account_user_name(subject.name_space, subject.name)
                           : subject.name;
    auto entry = by_subject_.find(subject_key(subject.kind, name));
    if (entry == by_subject_.end()) continue;
    auto in_space = entry->second.find(key.first);
    if (in_space != entry->second.end()) {
      in_space->second.erase(key.second);
      if (in_space->second.empty()) entry->second.erase(in_space);
    }
    if (entry->second.empty()) by_subject_.erase(entry);
  }
  bindings_.erase(found);
}

std::vector<const Rbac::Binding*> Rbac::bindings_for(const UserInfo& user,
                                                     const std::string& name_space) const {
  std::set<std::string> names;
  auto gather = [&](const std::string& subject) DIBS_REQUIRES_SHARED(mutex_) {
    auto entry = by_subject_.find(subject);
    if (entry == by_subject_.end()) return;
    auto in_space = entry->second.find(name_space);
    if (in_space == entry->second.end()) return;
    names.insert(in_space->second.begin(), in_space->second.end());
  };
  gather(subject_key("User", user.name));
  for (const std::string& group : user.groups) gather(subject_key("Group", group));
  std::vector<const Binding*> bindings;
  for (const std::string& name : names) {
    bindings.push_back(bindings_.at({name_space, name}).get());
  }
  return bindings;
}

const Rbac::Role* Rbac::role_of(const Binding& binding, std::string& fault) const {
  if (binding.to_cluster_role) {
    auto aggregated = aggregated_.find(binding.role);
    if (aggregated != aggregated_.end()) return aggregated->second.get();
  }
  Key key{binding.to_cluster_role ? std::string() : binding.name_space, binding.role};
  auto found = roles_.find(key);
  if (found != roles_.end()) return found->second.get();
  fault = cat(binding.to_cluster_role ? "clusterrole." : "role.", kGroup, " ", quoted(binding.role),
              " not found");
  return nullptr;
}

void Rbac::visit(const UserInfo& user, std::string_view name_space, const Visit& visitor) const {
  auto applies = [&](const Subject& subject) {
    if (subject.kind == "User") return subject.name == user.name;
    if (subject.kind == "Group") return user.in_group(subject.name);
    return subject.kind == "ServiceAccount" && !subject.name_space.empty() &&
           account_user_name(subject.name_space, subject.name) == user.name;
  };
  std::vector<std::string> spaces = {""};
  if (!name_space.empty()) spaces.emplace_back(name_space);
  for (const std::string& space : spaces) {
    for (const Binding* binding : bindings_for(user, space)) {
      auto subject = std::find_if(binding->subjects.begin(), binding->subjects.end(), applies);
      if (subject == binding->subjects.end()) continue;
      std::string fault;
      const Role* role = role_of(*binding, fault);
      if (!role) {
        if (!visitor(binding, &*subject, nullptr, fault)) return;
        continue;
      }
      for (const PolicyRule& rule : role->rules) {
        if (!visitor(binding, &*subject, &rule, fault)) return;
      }
    }
  }
}

void Rbac::forget_answers() {
  const MutexLock lock(answers_mutex_);
  answers_.clear();
}

Decision Rbac::authorize(const RequestAttributes& attributes) const {
  bool keep = false;
  const ReaderLock lock(mutex_);
  if (!attributes.is_resource) return look_through(attributes, keep);
  std::string question = question_of(attributes);
  {
    const MutexLock inner(answers_mutex_);
    if (auto found = answers_.find(question); found != answers_.end()) return found->second;
  }
  Decision decision = look_through(attributes, keep);
  if (!keep) return decision;
  const MutexLock inner(answers_mutex_);
  if (answers_.size() >= kMostAnswers) answers_.clear();
  answers_.emplace(std::move(question), decision);
  return decision;
}

Decision Rbac::look_through(const RequestAttributes& attributes, bool& keep) const {
  Decision decision;
  std::vector<std::string> faults;
  bool names_matter = false;
  visit(attributes.user, attributes.name_space,
        [&](const Binding* binding, const Subject* subject, const PolicyRule* rule,
            const std::string& fault) {
          if (!rule) {
            faults.push_back(fault);
            return true;
          }
          if (!matches_but_for_name(*rule, attributes)) return true;
          names_matter = names_matter || !rule->names.empty();
          if (!matches(*rule, attributes)) return true;
          decision.allowed = true;
          keep = binding->name_space.empty() && !names_matter;
          bool is_cluster = binding->name_space.empty();
          std::string name =
              is_cluster ? binding->name : cat(binding->name, "/", binding->name_space);
          std::string to = subject->kind == "ServiceAccount"
                               ? cat(subject->name, "/", subject->name_space)
                               : subject->name;
          decision.reason =
              cat("RBAC: allowed by ", is_cluster ? "Cluster" : "", "RoleBinding ", quoted(name),
                  " of ", binding->to_cluster_role ? "Cluster" : "", "Role ", quoted(binding->role),
                  " to ", subject->kind, " ", quoted(to));
          return false;
        });
  if (!decision.allowed && !faults.empty()) {
    decision.reason = cat("RBAC: ", faults_text(faults));
  }
  return decision;
}

std::vector<PolicyRule> Rbac::rules_for(const UserInfo& user, std::string_view name_space,
                                        std::vector<std::string>* missing) const {
  std::vector<PolicyRule> rules;
  const ReaderLock lock(mutex_);
  visit(user, name_space,
        [&](const Binding*, const Subject*, const PolicyRule* rule, const std::string& fault) {
          if (rule) {
            rules.push_back(*rule);
          } else if (missing) {
            missing->push_back(fault);
          }
          return true;
        });
  return rules;
}

Result<std::vector<PolicyRule>> Rbac::rules_of_role(const Value& role_ref,
                                                    std::string_view name_space) const {
  Binding binding;
  binding.name_space = name_space;
  binding.to_cluster_role = role_ref["kind"].as_string() != "Role";
  binding.role = role_ref["name"].str();
  const ReaderLock lock(mutex_);
  std::string fault;
  const Role* role = role_of(binding, fault);
  if (!role) return Error::not_found(fault);
  return role->rules;
}

}  // namespace dibs::server::auth
