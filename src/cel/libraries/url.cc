#include "cel/libraries/url.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"

namespace dibs::cel {

namespace {

/// The parts of a URL as Go's net/url.ParseRequestURI splits it.
class Url final : public Opaque {
 public:
  std::string_view type_name() const override { return "kubernetes.URL"; }
  bool equals(const Opaque& other) const override {
    return text == static_cast<const Url&>(other).text;
  }
  std::string text;
  std::string scheme;
  std::string host;  // with the port
  std::string path;  // escaped
  std::string query;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The length of a scheme before its colon: 0 when there is none, npos when it is broken.
std::size_t scheme_length(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_letter(c)) continue;
    if ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.') {
      if (i == 0) return 0;
      continue;
    }
    if (c == ':') return i == 0 ? std::string_view::npos : i;
    return 0;
  }
  return 0;
}

std::string port_problem(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  std::string_view port;
  if (host.starts_with('[')) {
    if (bracket == std::string_view::npos) return "missing ']' in host";
    port = host.substr(bracket + 1);
  } else {
    const std::size_t colon = host.rfind(':');
    if (colon != std::string_view::npos) port = host.substr(colon);
  }
  if (port.empty()) return "";
  if (port[0] != ':' || port.substr(1).find_first_not_of("0123456789") != std::string_view::npos)
    return cat("invalid port ", quoted(port), " after host");
  return "";
}

/// Names the first percent sign that no two hexadecimal digits follow.
std::string bad_escape(std::string_view text) {
  std::string unused;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::string_view escape = text.substr(at, 3);
    if (escape.size() < 3 || !percent_decode(escape, false, unused))
      return cat("invalid URL escape ", quoted(escape));
  }
  return "invalid URL escape";
}

/// Null, with the reason, when it is no absolute URL or path.
const Url* parse_url(std::string_view text, std::string& message) {
  const auto fail = [&](std::string_view reason) -> const Url* {
    message = cat("parse ", quoted(text), ": ", reason);
    return nullptr;
  };
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return fail("net/url: invalid control character in URL");
  }
  if (text.empty()) return fail("empty url");
  auto url = std::make_unique<Url>();
  url->text = text;
  // The fragment counts for nothing.
  std::string_view rest = text.substr(0, text.find('#'));
  if (rest != "*") {
    const std::size_t scheme = scheme_length(rest);
    if (scheme == std::string_view::npos) return fail("missing protocol scheme");
    if (scheme > 0) {
      url->scheme = to_lower(rest.substr(0, scheme));
      rest.remove_prefix(scheme + 1);
    }
  }
  const std::size_t question = rest.find('?');
  if (question != std::string_view::npos) {
    url->query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if (!rest.starts_with('/')) {
    if (rest == "*" && url->scheme.empty()) url->path = rest;
    if (!url->scheme.empty() || !url->path.empty()) return url.release();
    return fail("invalid URI for request");
  }
  if (rest.starts_with("//") && (!url->scheme.empty() || !rest.starts_with("///"))) {
    rest.remove_prefix(2);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view authority = rest.substr(0, slash);
    rest.remove_prefix(slash);
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) authority.remove_prefix(at + 1);
    const std::string problem = port_problem(authority);
    if (!problem.empty()) return fail(problem);
    if (!percent_decode(authority, false, url->host)) return fail(bad_escape(authority));
    if (authority.find(' ') != std::string_view::npos)
      return fail("invalid character \" \" in host name");
  }
  std::string decoded;
  if (!percent_decode(rest, false, decoded)) return fail(bad_escape(rest));
  url->path = rest;
  return url.release();
}

const Url& self(const Value& value) { return static_cast<const Url&>(value.as_opaque()); }

Value url(const Value* arguments, std::size_t) {
  std::string message;
  const Url* parsed = parse_url(arguments[0].text(), message);
  if (parsed != nullptr) return Value::opaque(parsed);
  return Value::error(cat("URL parse error during conversion from string: ", message));
}
Value is_url(const Value* arguments, std::size_t count) {
  return Value::boolean(!url(arguments, count).is_error());
}
Value scheme(const Value* arguments, std::size_t) {
  return Value::string(self(arguments[0]).scheme);
}
Value host(const Value* arguments, std::size_t) { return Value::string(self(arguments[0]).host); }

/// The host without brackets, and the port without its colon.
std::pair<std::string_view, std::string_view> split_host(std::string_view host) {
  std::string_view port;
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, port};
}
Value hostname(const Value* arguments, std::size_t) {
  return Value::string(std::string(split_host(self(arguments[0]).host).first));
}
Value port(const Value* arguments, std::size_t) {
  return Value::string(std::string(split_host(self(arguments[0]).host).second));
}

Value escaped_path(const Value* arguments, std::size_t) {
  // What Go would escape when it writes the path.
  constexpr std::string_view kPlain = "-_.~$&+,/:;=@!'()*%";
  std::string out;
  for (const char c : self(arguments[0]).path) {
    if (is_letter(c) || (c >= '0' && c <= '9') || kPlain.find(c) != std::string_view::npos)
      out += c;
    else
      out += percent_encode(std::string_view(&c, 1));
  }
  return Value::string(std::move(out));
}

Value query(const Value* arguments, std::size_t) {
  std::map<std::string, std::vector<Value>> values;
  for (const std::string_view pair : split(self(arguments[0]).query, '&')) {
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::string key;
    std::string value;
    if (!percent_decode(pair.substr(0, equals), true, key)) continue;
    if (equals < pair.size() && !percent_decode(pair.substr(equals + 1), true, value)) continue;
    values[key].push_back(Value::string(value));
  }
  MapBuilder builder;
  for (auto& [key, all] : values) builder.add(Value::string(key), Value::list(std::move(all)));
  return builder.build();
}

}  // namespace

std::string url_problem(std::string_view text) {
  std::string message;
  const std::unique_ptr<const Url> parsed(parse_url(text, message));
  return message;
}

void add_url(Environment& environment) {
  environment.function("url", {{"string -> kubernetes.URL", url, cost_scan_first}});
  environment.function("isURL", {{"string -> bool", is_url}});
  environment.function("getScheme", {{".kubernetes.URL -> string", scheme}});
  environment.function("getHost", {{".kubernetes.URL -> string", host}});
  environment.function("getHostname", {{".kubernetes.URL -> string", hostname}});
  environment.function("getPort", {{".kubernetes.URL -> string", port}});
  environment.function("getEscapedPath", {{".kubernetes.URL -> string", escaped_path}});
  environment.function("getQuery", {{".kubernetes.URL -> map(string, list(string))", query}});
}

}  // namespace dibs::cel
