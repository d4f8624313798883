#include "server/proxied_links.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::server {
namespace {

// What is longer is no tag that a page means.
constexpr std::size_t kLongestTag = 64 << 10;

struct LinkAttribute {
  std::string_view tag;
  std::string_view name;
};
constexpr LinkAttribute kLinks[] = {
    {"a", "href"},           {"applet", "codebase"},   {"area", "href"},
    {"audio", "src"},        {"base", "href"},         {"blockquote", "cite"},
    {"body", "background"},  {"button", "formaction"}, {"command", "icon"},
    {"del", "cite"},         {"embed", "src"},         {"form", "action"},
    {"frame", "longdesc"},   {"frame", "src"},         {"head", "profile"},
    {"html", "manifest"},    {"iframe", "longdesc"},   {"iframe", "src"},
    {"img", "longdesc"},     {"img", "src"},           {"img", "usemap"},
    {"input", "formaction"}, {"input", "src"},         {"input", "usemap"},
    {"ins", "cite"},         {"link", "href"},         {"object", "classid"},
    {"object", "codebase"},  {"object", "data"},       {"object", "usemap"},
    {"q", "cite"},           {"script", "src"},        {"source", "src"},
    {"track", "src"},        {"video", "poster"},      {"video", "src"},
};

bool holds_link(std::string_view tag, std::string_view name) {
  return std::any_of(std::begin(kLinks), std::end(kLinks),
                     [&](const LinkAttribute& one) { return one.tag == tag && one.name == name; });
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

/// Where the tag ends, behind its ">"; npos: not yet. A ">" within quotes is none.
std::size_t end_of_tag(std::string_view text, LinkRewriter::Looked& looked) {
  for (std::size_t at = std::max<std::size_t>(1, looked.at); at < text.size(); ++at) {
    const char c = text[at];
    if (looked.quote != 0) {
      if (c == looked.quote) looked.quote = 0;
    } else if ((c == '"' || c == '\'') && looked.last == '=') {
      looked.quote = c;
    } else if (c == '>') {
      return at + 1;
    }
    if (!is_blank(c)) looked.last = c;
  }
  looked.at = text.size();
  return std::string_view::npos;
}

std::size_t end_of_name(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_blank(text[at]) && text[at] != '/' && text[at] != '>' &&
         text[at] != '=')
    ++at;
  return at;
}

class LinkedBody final : public net::BodySource {
 public:
  LinkedBody(std::shared_ptr<net::BodySource> body, ProxiedPage page)
      : body_(std::move(body)), rewriter_(std::make_shared<LinkRewriter>(std::move(page))) {}

  void start(std::function<void(std::string piece)> data,
             std::function<void(bool whole)> ended) override {
    body_->start(
        [data, rewriter = rewriter_](const std::string& piece) {
          if (std::string known = rewriter->take(piece); !known.empty()) data(std::move(known));
        },
        [data, ended, rewriter = rewriter_](bool whole) {
          if (std::string rest = rewriter->finish(); whole && !rest.empty()) data(std::move(rest));
          ended(whole);
        });
  }
  void hold(bool held) override { body_->hold(held); }
  void expire(Duration span) override { body_->expire(span); }

 private:
  const std::shared_ptr<net::BodySource> body_;
  const std::shared_ptr<LinkRewriter> rewriter_;
};

}  // namespace

std::string proxied_link(std::string_view link, const ProxiedPage& page) {
  std::string_view origin;
  std::string_view path = link;
  if (const auto scheme = link.find("://");
      scheme != std::string_view::npos && link.find_first_of("/?#") == scheme + 1) {
    const auto end = std::min(link.find_first_of("/?#", scheme + 3), link.size());
    const std::string_view host = link.substr(scheme + 3, end - scheme - 3);
    if (host != page.server_host && host != page.client_host) return std::string(link);
    if (host == page.client_host) origin = link.substr(0, end);
    path = link.substr(end);
  } else if (link.starts_with("//")) {
    return std::string(link);
  }
  if (!path.starts_with('/') || path.starts_with(page.prefix)) return std::string(link);
  return cat(origin, page.prefix, path);
}

std::string LinkRewriter::take(std::string_view piece) {
  kept_ += piece;
  std::string out;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const std::size_t used = step(rest, out);
    if (used == 0) break;
    rest.remove_prefix(used);
    looked_ = {};
  }
  kept_.erase(0, kept_.size() - rest.size());
  return out;
}

std::string LinkRewriter::finish() { return std::move(kept_); }

/// Takes one tag, comment or stretch of text from the beginning; 0: more has to come first.
std::size_t LinkRewriter::step(std::string_view text, std::string& out) {
  const auto pass = [&](std::size_t count) {
    out += text.substr(0, count);
    return count;
  };
  const auto open = text.find('<');
  if (open != 0) return pass(std::min(open, text.size()));
  if (!inside_.empty()) {
    const std::string end = cat("</", inside_);
    if (text.size() < end.size()) return 0;
    if (to_lower(text.substr(0, end.size())) != end) return pass(1);
    inside_.clear();
  }
  if (text.size() == 1) return 0;
  if (!is_letter(text[1]) && text[1] != '/' && text[1] != '!' && text[1] != '?') return pass(1);
  constexpr std::string_view kComment = "<!--";
  if (text.size() < kComment.size() && kComment.starts_with(text)) return 0;
  if (text.starts_with(kComment)) {
    constexpr std::string_view kEnd = "-->";
    const auto end = text.find(kEnd, std::max(kComment.size(), looked_.at));
    if (end != std::string_view::npos) return pass(end + kEnd.size());
    looked_.at = text.size() - (kEnd.size() - 1);
    return text.size() > kLongestTag ? pass(text.size() - 2) : 0;
  }
  const std::size_t end = end_of_tag(text, looked_);
  if (end == std::string_view::npos) return text.size() > kLongestTag ? pass(text.size()) : 0;
  out += rewritten(text.substr(0, end));
  return end;
}

std::string LinkRewriter::rewritten(std::string_view tag) {
  const std::size_t name_end = end_of_name(tag, 1);
  const std::string name = to_lower(tag.substr(1, name_end - 1));
  if (name == "script" || name == "style") inside_ = name;
  std::string out;
  std::size_t told = 0;
  for (std::size_t at = skip_blanks(tag, name_end); at + 1 < tag.size();
       at = skip_blanks(tag, at)) {
    const std::size_t key_end = end_of_name(tag, at);
    if (key_end == at) {
      ++at;
      continue;
    }
    const std::string key = to_lower(tag.substr(at, key_end - at));
    at = skip_blanks(tag, key_end);
    if (at >= tag.size() || tag[at] != '=') continue;
    at = skip_blanks(tag, at + 1);
    if (at >= tag.size()) break;
    const char quote = tag[at] == '"' || tag[at] == '\'' ? tag[at] : 0;
    const std::size_t begin = at + (quote != 0 ? 1 : 0);
    std::size_t end = begin;
    while (end < tag.size() &&
           (quote != 0 ? tag[end] != quote : !is_blank(tag[end]) && tag[end] != '>'))
      ++end;
    if (holds_link(name, key)) {
      append(out, tag.substr(told, begin - told),
             proxied_link(tag.substr(begin, end - begin), page_));
      told = end;
    }
    at = end + (quote != 0 ? 1 : 0);
  }
  out += tag.substr(told);
  return out;
}

std::shared_ptr<net::BodySource> with_proxied_links(std::shared_ptr<net::BodySource> body,
                                                    ProxiedPage page) {
  return std::make_shared<LinkedBody>(std::move(body), std::move(page));
}

}  // namespace dibs::server
