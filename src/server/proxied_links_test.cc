#include "server/proxied_links.h"

#include <gtest/gtest.h>

namespace dibs::server {
namespace {

const ProxiedPage kPage = {"/api/v1/namespaces/n/pods/p/proxy", "10.1.2.3:80", "localhost:8001"};

TEST(ProxiedLinks, lead_through_the_proxy_again) {
  EXPECT_EQ(proxied_link("/x?y#z", kPage), "/api/v1/namespaces/n/pods/p/proxy/x?y#z");
  EXPECT_EQ(proxied_link("http://10.1.2.3:80/x", kPage), "/api/v1/namespaces/n/pods/p/proxy/x");
  EXPECT_EQ(proxied_link("http://localhost:8001/x", kPage),
            "http://localhost:8001/api/v1/namespaces/n/pods/p/proxy/x");
}

TEST(ProxiedLinks, are_left_alone_where_they_need_nothing) {
  for (const char* link : {"", "x", "../x", "#z", "?q=http://10.1.2.3:80/", "http://other/x",
                           "//other/x", "mailto:a@b", "/api/v1/namespaces/n/pods/p/proxy/x"}) {
    EXPECT_EQ(proxied_link(link, kPage), link);
  }
}

std::string rewritten(std::string_view page, std::size_t piece) {
  LinkRewriter rewriter(kPage);
  std::string out;
  for (std::size_t at = 0; at < page.size(); at += piece)
    out += rewriter.take(page.substr(at, piece));
  return out + rewriter.finish();
}

TEST(ProxiedLinks, of_a_page_are_rewritten_in_whatever_pieces_it_comes) {
  const std::string_view page =
      "<!DOCTYPE html><A  HREF = '/a' title=\"1 > 0\">x < y <b></a><img src=/i><img alt=/i>"
      "<!-- <a href=\"/no\"> --><script src=\"/s\">var a = '<a href=\"/no\">';</script>"
      "<form action=\"/f\"/><a href>";
  const std::string p = kPage.prefix;
  const std::string wanted =
      "<!DOCTYPE html><A  HREF = '" + p + "/a' title=\"1 > 0\">x < y <b></a><img src=" + p +
      "/i><img alt=/i><!-- <a href=\"/no\"> --><script src=\"" + p +
      "/s\">var a = '<a href=\"/no\">';</script><form action=\"" + p + "/f\"/><a href>";
  for (std::size_t piece = 1; piece <= page.size(); ++piece)
    ASSERT_EQ(rewritten(page, piece), wanted) << piece;
}

TEST(ProxiedLinks, lose_nothing_of_what_is_no_page) {
  const std::string endless = "<" + std::string(200'000, 'x');
  EXPECT_EQ(rewritten(endless, 1000), endless);
  const std::string comment = "<!--" + std::string(200'000, '-');
  EXPECT_EQ(rewritten(comment, 1000), comment);
  for (const char* text : {"<", "<!-", "<a href=", "<a href='/x", "</scr", "plain"})
    EXPECT_EQ(rewritten(text, 1), text);
}

// Read again from each "<", or with each piece, these would take minutes.
TEST(ProxiedLinks, take_no_longer_where_no_tag_ever_ends) {
  std::string tags;
  while (tags.size() < (std::size_t{8} << 20)) tags += "<a";
  EXPECT_EQ(rewritten(tags, 16 << 10), tags);
  for (const char* begin : {"<a ", "<a b='", "<!--"}) {
    std::string text;
    while (text.size() < (std::size_t{2} << 20)) text += begin + std::string(60 << 10, 'x');
    EXPECT_EQ(rewritten(text, 1), text) << begin;
  }
}

}  // namespace
}  // namespace dibs::server
