#include "cli/select_input.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <iterator>

#include "base/strings.h"
#include "client/client.h"
#include "client/https_transport.h"
#include "client/kubeconfig.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using Document = std::pair<std::string, json::Value>;

Result<std::string> read_text(const std::string& path, std::istream& input) {
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>());
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return Error::not_found(cat(path, ": no such file or folder"));
  auto read = runtime::system_files().read(path);
  if (!read.ok()) return Error::bad_request(cat(path, ": ", read.error().message()));
  return read;
}

std::string name_of(const std::string& path) { return path == "-" ? "standard input" : path; }

Result<std::vector<Document>> json_lines(const std::string& name, std::string_view text) {
  std::vector<Document> made;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::string where = cat(name, ": line ", ++number);
    if (trim(line).empty()) continue;
    auto parsed = json::parse(line);
    if (!parsed.ok()) return parsed.error().within(where);
    made.emplace_back(where, std::move(*parsed));
  }
  return made;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> made;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file(code) &&
        (extension == ".yaml" || extension == ".yml" || extension == ".json"))
      made.push_back(entry.path().string());
  }
  std::sort(made.begin(), made.end());
  return made;
}

bool is_other_object(const json::Value& object) {
  return object["kind"].is_string() && object["apiVersion"].is_string() &&
         !api::is_slice_or_list(object);
}

Result<Nothing> read_file(const std::string& path, std::istream& input, bool in_folder,
                          std::vector<api::SliceDevice>& out) {
  DIBS_TRY(const auto documents, read_documents(path, input));
  if (documents.empty() && !in_folder)
    return Error::bad_request(cat(name_of(path), ": has no document"));
  for (const auto& [where, document] : documents) {
    if (in_folder && is_other_object(document)) continue;
    auto devices = api::devices_of(document);
    if (!devices.ok()) return devices.error().within(where);
    std::move(devices->begin(), devices->end(), std::back_inserter(out));
  }
  return success();
}

}  // namespace

Result<std::vector<Document>> read_documents(const std::string& path, std::istream& input) {
  DIBS_TRY(const std::string text, read_text(path, input));
  const std::string name = name_of(path);
  if (path.ends_with(".jsonl")) return json_lines(name, text);
  const std::string_view content = trim(text);
  if (content.starts_with('{') || content.starts_with('[')) {
    auto parsed = json::parse(content);
    // Several objects, one after the other, are no JSON, but YAML may take them.
    if (parsed.ok()) return std::vector<Document>{{name, std::move(*parsed)}};
    if (path.ends_with(".json")) return parsed.error().within(name);
  }
  auto parsed = json::parse_yaml_stream(text);
  if (!parsed.ok()) return parsed.error().within(name);
  std::vector<Document> made;
  std::size_t number = 0;
  for (json::Value& document : *parsed) {
    ++number;
    made.emplace_back(parsed->size() == 1 ? name : cat(name, ": document ", number),
                      std::move(document));
  }
  return made;
}

Result<std::vector<api::SliceDevice>> read_slices(const std::vector<std::string>& paths,
                                                  std::istream& input) {
  std::vector<api::SliceDevice> made;
  for (const std::string& path : paths) {
    std::error_code code;
    if (path == "-" || !std::filesystem::is_directory(path, code)) {
      DIBS_CHECK(read_file(path, input, false, made));
      continue;
    }
    const std::vector<std::string> files = files_in(path);
    if (files.empty()) return Error::bad_request(cat(path, ": has no files .yaml, .yml or .json"));
    for (const std::string& file : files) DIBS_CHECK(read_file(file, input, true, made));
  }
  return made;
}

Result<std::vector<api::SliceDevice>> fetch_slices(const std::string& kubeconfig,
                                                   const std::string& context) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const auto config, client::Kubeconfig::load(files, {kubeconfig}));
  DIBS_TRY(const auto access, config.resolve(files, context));
  runtime::RealRuntime runtime;
  DIBS_TRY(const auto transport, client::make_https_transport(access, files, runtime.runtime()));
  client::Client client(*transport);
  for (const char* version : {"v1", "v1beta2", "v1beta1", "v1alpha3"}) {
    auto listed = client.list({"resource.k8s.io", version, "resourceslices"}, "");
    if (!listed.ok() && listed.error().code() == Code::not_found) continue;
    if (!listed.ok()) return listed.error().within(access.server);
    std::vector<api::SliceDevice> made;
    for (const json::Value& slice : listed->items) {
      auto devices = api::devices_of(slice);
      if (!devices.ok())
        return devices.error().within(cat("slice ", slice["metadata"]["name"].as_string()));
      std::move(devices->begin(), devices->end(), std::back_inserter(made));
    }
    return made;
  }
  return Error::not_found(cat(access.server, ": serves no ResourceSlices with devices"));
}

}  // namespace dibs::cli
