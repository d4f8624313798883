#include "node/runtime/sim_script.h"

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"

namespace dibs::node {
namespace {

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

const std::string* find(const SimEnv& env, std::string_view name) {
  for (const auto& [key, value] : env) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// $NAME and ${NAME} at `at`, which stands on the dollar; moves it to the last character.
std::string variable(std::string_view text, std::size_t& at, const SimEnv& env) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  std::size_t from = at + (braces ? 2 : 1), end = from;
  while (end < text.size() && is_name(text[end])) ++end;
  if (end == from) return "$";
  at = braces && end < text.size() ? end : end - 1;
  const std::string* value = find(env, text.substr(from, end - from));
  return value != nullptr ? *value : "";
}

// Simple commands of a script, each as words. Quotes and variables are resolved.
std::vector<std::vector<std::string>> commands_of(std::string_view script, const SimEnv& env) {
  std::vector<std::vector<std::string>> all(1);
  std::string word;
  bool open = false;
  const auto end_word = [&] {
    if (open) all.back().push_back(std::move(word));
    word.clear();
    open = false;
  };
  const auto end_command = [&] {
    end_word();
    if (!all.back().empty()) all.emplace_back();
  };
  char quote = '\0';
  for (std::size_t i = 0; i < script.size(); ++i) {
    const char c = script[i];
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else if (c == '$' && quote == '"') {
        word += variable(script, i, env);
      } else {
        word.push_back(c);
      }
      continue;
    }
    if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == '$') {
      word += variable(script, i, env);
      open = true;
    } else if (c == ';' || c == '\n' || c == '|' || c == '&') {
      // A descriptor's ampersand belongs to its word.
      if (c == '&' && open && !word.empty() && word.back() == '>') {
        word.push_back(c);
        continue;
      }
      end_command();
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else {
      word.push_back(c);
      open = true;
    }
  }
  end_command();
  if (all.back().empty()) all.pop_back();
  return all;
}

Duration sleep_time(const std::vector<std::string>& words, bool& endless) {
  if (words.size() < 2) return Duration::zero();
  const std::string& text = words[1];
  if (text.starts_with("inf")) {
    endless = true;
    return Duration::zero();
  }
  double seconds = std::strtod(text.c_str(), nullptr);
  if (text.ends_with("m")) seconds *= 60;
  if (text.ends_with("h")) seconds *= 3600;
  if (text.ends_with("d")) seconds *= 86400;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, 1e9)));
}

class Reader {
 public:
  Reader(const SimEnv& env, bool probe) : env_(env), probe_(probe) {}

  SimScript read(const std::vector<std::string>& words) {
    run(words, 0);
    return std::move(script_);
  }

 private:
  bool over() const { return ended_ || script_.endless; }

  void run(std::vector<std::string> words, int depth) {
    if (words.empty()) {
      if (!probe_) script_.endless = true;
      return;
    }
    bool to_err = false;
    std::erase_if(words, [&](const std::string& word) {
      to_err = to_err || word == ">&2" || word == "1>&2";
      return word == ">&2" || word == "1>&2" || word == "2>&1";
    });
    if (words.empty()) return;
    const std::string name = base_name(words[0]);
    if ((name == "sh" || name == "bash" || name == "ash") && depth < 4) {
      for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        if (words[i].starts_with('-') && words[i].ends_with('c')) return shell(words[i + 1], depth);
      }
    }
    command(name, words, to_err);
  }

  void shell(std::string_view script, int depth) {
    for (const auto& words : commands_of(script, env_)) {
      if (over()) return;
      run(words, depth + 1);
    }
  }

  void command(const std::string& name, const std::vector<std::string>& words, bool to_err) {
    std::string& out = to_err ? script_.err : script_.out;
    script_.exit_code = 0;
    if (name == "echo" || name == "printf") {
      std::vector<std::string> rest(words.begin() + 1, words.end());
      append(out, join(rest, " "), name == "echo" ? "\n" : "");
    } else if (name == "env" || (name == "printenv" && words.size() == 1)) {
      for (const auto& [key, value] : env_) append(out, key, "=", value, "\n");
    } else if (name == "export" && words.size() == 1) {
      for (const auto& [key, value] : env_) append(out, "export ", key, "='", value, "'\n");
    } else if (name == "printenv") {
      for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string* value = find(env_, words[i]);
        if (value != nullptr) append(out, *value, "\n");
        if (value == nullptr) script_.exit_code = 1;
      }
    } else if (name == "sleep") {
      script_.run += sleep_time(words, script_.endless);
    } else if (name == "exit") {
      script_.exit_code = words.size() > 1 ? std::atoi(words[1].c_str()) & 255 : 0;
      ended_ = true;
    } else if (name == "false") {
      script_.exit_code = 1;
    } else if (name == "trap") {
      script_.deaf = words.size() > 1 && words[1].empty();
      script_.graceful = !script_.deaf;
    } else if (name == "hostname") {
      const std::string* value = find(env_, "HOSTNAME");
      append(out, value != nullptr ? *value : "", "\n");
    } else if (name == "while" || name == "until" || name == "for" || name == "wait" ||
               name == "tail" || name == "nc" || name == "httpd" || name == "read") {
      if (!probe_) script_.endless = true;
    } else if (first_ && !probe_ && !is_small(name)) {
      script_.endless = true;  // a program of which nothing is known
    }
    first_ = false;
  }

  // Ends at once and says nothing that matters here.
  static bool is_small(std::string_view name) {
    constexpr std::string_view kNames[] = {
        "true", "test", "[",   "cat",  "ls", "id",   "pwd",  "cd",    "touch", "mkdir", "rm",
        "cp",   "mv",   "set", "grep", "wc", "date", "stat", "chmod", "ln",    "exec",  "export"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  }

  const SimEnv& env_;
  const bool probe_;
  SimScript script_;
  bool ended_ = false;
  bool first_ = true;
};

}  // namespace

SimScript read_script(const std::vector<std::string>& words, const SimEnv& env, bool probe) {
  return Reader(env, probe).read(words);
}

}  // namespace dibs::node
