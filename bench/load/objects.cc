#include "load/objects.h"

#include <cstdio>

#include "base/strings.h"

namespace dibs::bench {

std::string config_map(std::string_view name, std::string_view mark) {
  constexpr std::size_t kServerAdds = 400;  // uid, times, managed fields
  std::string out = cat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                        R"(","labels":{"app":"load"}},"data":{"mark":")", mark, R"(","text":")");
  out.append(kObjectBytes - kServerAdds - out.size() - 4, 'x');
  out.append("\"}}");
  return out;
}

std::string path_of(std::string_view name_space, std::string_view name) {
  return cat("/api/v1/namespaces/", name_space, "/configmaps", name.empty() ? "" : "/", name);
}

Work creates(std::string_view name_space) {
  Work work;
  work.request =
      make_request("POST", path_of(name_space), config_map(cat("map-", kNumber), "created"));
  work.number_at = work.request.find(kNumber);
  work.expected_status = 201;
  return work;
}

Work gets(std::string_view name_space, std::uint64_t count) {
  Work work;
  work.request = make_request("GET", path_of(name_space, cat("map-", kNumber)));
  work.number_at = work.request.find(kNumber);
  work.count = count;
  work.again = true;
  return work;
}

Work deletes(std::string_view name_space, std::uint64_t first, std::uint64_t count) {
  Work work;
  work.request = make_request("DELETE", path_of(name_space, cat("map-", kNumber)));
  work.number_at = work.request.find(kNumber);
  work.first = first;
  work.count = count;
  return work;
}

Work as_user(std::string_view name, Work work) {
  work.request.insert(work.request.find("\r\n") + 2, cat("Impersonate-User: ", name, "\r\n"));
  work.number_at = work.request.find(kNumber);
  return work;
}

void must_create(Connection& connection, std::string_view path, std::string_view body) {
  connection.exchange(make_request("POST", path, body));
  if (connection.status() != 201)
    die(cat("a POST to ", path, " was answered with ", connection.status()));
}

void make_namespace(Connection& connection, std::string_view name) {
  must_create(connection, "/api/v1/namespaces",
              cat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name, "\"}}"));
}

std::string round_text(double value, int decimals) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace dibs::bench
