#include "net/http.h"

#include <algorithm>

#include "base/strings.h"
#include "net/wire.h"

namespace dibs::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// A token as RFC 9110 has it.
bool is_name(std::string_view text) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

}  // namespace

void Headers::set(std::string_view name, std::string value) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!same_name(fields_[i].first, name)) continue;
    fields_[i].second = std::move(value);
    fields_.erase(
        std::remove_if(fields_.begin() + static_cast<std::ptrdiff_t>(i) + 1, fields_.end(),
                       [&](const auto& field) { return same_name(field.first, name); }),
        fields_.end());
    return;
  }
  fields_.emplace_back(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) return value;
  }
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return same_name(field.first, name); });
}

std::vector<std::string_view> Headers::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) values.push_back(value);
  }
  return values;
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (same_name(item, token)) return true;
  }
  return false;
}

bool is_websocket_upgrade(const Request& request) {
  if (request.method != "GET" || !has_token(request.headers.get("Upgrade"), "websocket")) {
    return false;
  }
  for (const auto value : request.headers.all("Connection")) {
    if (has_token(value, "upgrade")) return true;
  }
  return false;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 414:
      return "Request URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

Result<> check_sendable(const Request& request) {
  if (!is_name(request.method)) {
    return Error::invalid(cat("HTTP method ", quoted(request.method), ": must be a token"));
  }
  for (const char c : request.target) {
    if (c == ' ' || is_control(c)) {
      return Error::invalid(cat("HTTP target ", quoted(request.target),
                                ": must not have spaces or control characters"));
    }
  }
  for (const auto& [name, value] : request.headers.fields()) {
    if (!is_name(name)) {
      return Error::invalid(cat("HTTP header name ", quoted(name), ": must be a token"));
    }
    if (std::any_of(value.begin(), value.end(),
                    [](char c) { return c != '\t' && is_control(c); })) {
      // The value may be a secret.
      return Error::invalid(cat("HTTP header ", name, ": must not have control characters"));
    }
  }
  return success();
}

std::string_view origin_form(std::string_view target) {
  if (target.empty() || target.front() == '/') return target;
  const auto scheme = target.find("://");
  if (scheme == std::string_view::npos) return target;
  const auto path = target.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

Result<Target> Target::parse(std::string_view target) {
  target = origin_form(target);
  Target out;
  const auto mark = target.find('?');
  if (!percent_decode(target.substr(0, mark), false, out.path)) {
    return Error::bad_request(cat("invalid URL escape in ", quoted(target.substr(0, mark))));
  }
  if (out.path.empty()) out.path = "/";
  if (mark == std::string_view::npos) return out;
  for (const auto pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const auto equals = pair.find('=');
    std::string key;
    std::string value;
    if (!percent_decode(pair.substr(0, equals), true, key)) continue;
    if (equals != std::string_view::npos && !percent_decode(pair.substr(equals + 1), true, value)) {
      continue;
    }
    out.query.emplace_back(std::move(key), std::move(value));
  }
  return out;
}

std::string_view Target::get(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

bool Target::has(std::string_view name) const {
  return std::any_of(query.begin(), query.end(),
                     [&](const auto& pair) { return pair.first == name; });
}

void Exchange::upgrade_to(Response, std::function<void(std::shared_ptr<ByteStream>)> ready) {
  Response response;
  response.status = 400;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = "Bad Request: this transport cannot be upgraded\n";
  respond(std::move(response));
  ready(nullptr);
}

void Exchange::on_gone(std::function<void()>) {}

}  // namespace dibs::net
