#include "server/negotiate.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/strings.h"
#include "server/request_info.h"

namespace dibs::server {
namespace {

constexpr std::string_view kAvailable =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

struct Clause {
  std::string type;
  std::map<std::string, std::string> parameters;
  double weight = 1;
};

Clause parse_clause(std::string_view text) {
  Clause clause;
  bool first = true;
  for (std::string_view part : split(text, ';')) {
    part = trim(part);
    if (first) {
      clause.type = part;
      first = false;
      continue;
    }
    auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    std::string key(trim(part.substr(0, equals)));
    std::string value(trim(part.substr(equals + 1)));
    if (key == "q") {
      clause.weight = std::strtod(value.c_str(), nullptr);
    } else {
      clause.parameters[key] = value;
    }
  }
  return clause;
}

Error nothing_acceptable(AnswerTo what) {
  std::string text = cat("406: Not Acceptable\n\nAvailable representations: ", kAvailable);
  if (what != AnswerTo::one) {
    append(text,
           ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
  }
  return {Code::not_acceptable, std::move(text), ErrorDetails{}};
}

/// False when the clause asks for a form that this request cannot take.
bool take_form(const Clause& clause, AnswerTo what, Forms forms, Answer& answer) {
  auto get = [&](const char* key) {
    auto found = clause.parameters.find(key);
    return found == clause.parameters.end() ? std::string() : found->second;
  };
  std::string as = get("as");
  const bool protobuf = answer.media == Media::protobuf;
  if (as.empty()) return !protobuf || forms.protobuf;
  if (as == "Stored") {
    answer.form = Form::stored;
    return forms.stored && !protobuf;
  }
  if (get("g") != "meta.k8s.io" || (get("v") != "v1" && get("v") != "v1beta1")) return false;
  answer.form_version = get("v");
  if (as == "Table") {
    answer.form = Form::table;
    return forms.table && !protobuf;
  }
  if (as == "PartialObjectMetadata") {
    answer.form = Form::metadata;
    return true;
  }
  if (as == "PartialObjectMetadataList" && what != AnswerTo::watch) {
    answer.form = Form::metadata_list;
    return true;
  }
  return false;
}

bool wants_pretty(const net::Request& request, const net::Target& target) {
  if (target.has("pretty")) return query_flag(target, "pretty");
  auto agent = request.headers.get("User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

}  // namespace

std::string media_type(std::string_view header) {
  return to_lower(trim(header.substr(0, header.find(';'))));
}

Result<Answer> negotiate_answer(const net::Request& request, const net::Target& target,
                                AnswerTo what, Forms forms) {
  Answer plain;
  plain.pretty = wants_pretty(request, target);
  std::string header;
  for (std::string_view value : request.headers.all("Accept")) {
    append(header, header.empty() ? "" : ",", value);
  }
  // What most clients send needs no clauses.
  if (trim(header).empty() || header == "application/json") return plain;

  std::vector<Clause> clauses;
  for (std::string_view text : split(header, ',')) {
    if (!trim(text).empty()) clauses.push_back(parse_clause(trim(text)));
  }
  std::stable_sort(clauses.begin(), clauses.end(),
                   [](const Clause& a, const Clause& b) { return a.weight > b.weight; });
  bool refused_form = false;
  bool refused_stream = false;
  bool protobuf_only = false;
  const bool json_too = std::any_of(clauses.begin(), clauses.end(), [](const Clause& clause) {
    return clause.type == "application/json" || clause.type == "*/*";
  });
  for (const Clause& clause : clauses) {
    Answer answer = plain;
    if (clause.type == "application/json" || clause.type == "*/*") {
      answer.media = Media::json;
    } else if (clause.type == "application/yaml") {
      if (what == AnswerTo::watch) {
        refused_stream = true;
        continue;
      }
      answer.media = clause.parameters.contains("as") ? Media::json : Media::yaml;
    } else if (clause.type == "application/vnd.kubernetes.protobuf") {
      answer.media = Media::protobuf;
      answer.json_too = json_too;
      if (take_form(clause, what, forms, answer)) return answer;
      protobuf_only = true;  // JSON is what every such client takes as well
      continue;
    } else {
      continue;
    }
    if (take_form(clause, what, forms, answer)) {
      if (clause.parameters.contains("pretty"))
        answer.pretty = clause.parameters.at("pretty") == "1";
      return answer;
    }
    refused_form = true;
  }
  if (refused_stream && !protobuf_only) {
    return Error(Code::not_acceptable,
                 "only the following media types are accepted: application/json;stream=watch, "
                 "application/vnd.kubernetes.protobuf;stream=watch");
  }
  if (refused_form || (protobuf_only && forms.strict)) {
    return Error(Code::not_acceptable,
                 cat("only the following media types are accepted: ", kAvailable));
  }
  if (protobuf_only) return plain;
  return nothing_acceptable(what);
}

Result<BodyFormat> body_format(std::string_view content_type) {
  std::string type = media_type(content_type);
  if (type.empty() || type == "application/json") return BodyFormat::json;
  if (type == "application/yaml") return BodyFormat::yaml;
  if (type == "application/vnd.kubernetes.protobuf") return BodyFormat::protobuf;
  return Error(
      Code::unsupported_media_type,
      cat("the body of the request was in an unknown format - accepted media types include: ",
          kAvailable));
}

}  // namespace dibs::server
