#include "cli/config_file.h"

#include <algorithm>

#include "base/did_you_mean.h"
#include "base/flags.h"
#include "base/strings.h"
#include "json/parse.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

using json::Value;

using Words = std::vector<std::string>;

/// What a command line would have. Errors: the kind of value is wrong.
Result<Words> words_of(const Flag& flag, const Value& value) {
  const auto must_be = [](std::string_view what) {
    return Error::bad_request(cat("must be ", what));
  };
  if (value.is_null()) return must_be("set to something, or left out");
  if (is_list(flag)) {
    Words out;
    if (value.is_string() && flag.form.commas) {
      for (const auto word : split(value.as_string(), ',')) out.emplace_back(word);
      return out;
    }
    if (value.is_string()) return Words{value.str()};
    if (!value.is_array()) return must_be("a list of texts");
    for (const Value& item : value.items()) {
      if (!item.is_string()) return must_be("a list of texts: put numbers in quotes");
      out.push_back(item.str());
    }
    return out;
  }
  if (std::holds_alternative<bool*>(flag.target)) {
    if (value.kind() != json::Kind::boolean) return must_be("true or false");
    return Words{value.as_bool() ? "true" : "false"};
  }
  if (std::holds_alternative<std::string*>(flag.target)) {
    if (!value.is_string()) return must_be("text: put it in quotes");
    return Words{value.str()};
  }
  if (std::holds_alternative<Duration*>(flag.target)) {
    if (!value.is_string()) return must_be("a duration, such as 90s, 1m30s or 500ms");
    return Words{value.str()};
  }
  if (value.kind() == json::Kind::integer || value.kind() == json::Kind::number) {
    return Words{json::write(value)};
  }
  return must_be(std::holds_alternative<double*>(flag.target) ? "a number" : "a whole number");
}

/// Keys that are there twice come as a list, one in a line: the first of them.
Error in_a_line(const Error& error) {
  const std::vector<std::string_view> lines = split(error.message(), '\n');
  return lines.size() < 2 ? error : Error(error.code(), std::string(trim(lines[1])));
}

}  // namespace

std::string ConfigFile::place(std::string_view key) const {
  const auto line = lines.find(key);
  return line == lines.end() ? path : cat(path, ": line ", line->second);
}

Error ConfigFile::wrong(std::string_view key, std::string_view what) const {
  return Error::bad_request(cat(place(key), ": ", key, ": ", what));
}

Result<ConfigFile> read_config(const std::string& path) {
  const auto text = runtime::system_files().read(path);
  if (!text.ok()) return Error::bad_request(text.error().message()).within("--config");
  const auto documents = json::parse_yaml_stream(*text);
  if (!documents.ok()) return in_a_line(documents.error()).within(path);
  if (documents->size() > 1) {
    return Error::bad_request(
        cat(path, ": holds ", documents->size(), " documents; one cluster has one"));
  }
  ConfigFile out{path, Value::object(), {}};
  auto parsed = json::parse_yaml(*text, nullptr, &out.lines);
  if (!parsed.ok()) return in_a_line(parsed.error()).within(path);
  Value values = std::move(*parsed);
  if (values.is_null()) return out;
  if (!values.is_object()) {
    return Error::bad_request(cat(path, ": must be keys with values, such as `nodes: 2`"));
  }
  out.values = std::move(values);
  return out;
}

std::string key_of(const Flag& flag) {
  const std::string name = name_of(flag);
  return is_positional(flag) ? to_lower(name) : name.substr(2);
}

Result<> set_flag(const Flag& flag, const Value& value) {
  DIBS_TRY(const Words words, words_of(flag, value));
  return set_value(flag, words);
}

Result<> check_keys(const ConfigFile& file, const Value& object, const std::string& path,
                    const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string meant = did_you_mean(key, known);
    const bool list = meant.empty() && known.size() < 10;
    return Error::bad_request(
        cat(file.place(path.empty() ? std::string(key) : cat(path, ".", key)), ": ",
            path.empty() ? "" : cat(path, ": "), "unknown key ", quoted(key), meant,
            list            ? cat("; known are ", join(known, ", "))
            : meant.empty() ? "; keys are named as the flags of `dibs up --help`"
                            : ""));
  }
  return success();
}

}  // namespace dibs::cli
