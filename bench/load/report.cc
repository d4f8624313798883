#include "load/report.h"

#include <cstdio>

#include "load/connection.h"

namespace dibs::bench {

void Report::add(Figure figure) {
  const int decimals = figure.value < 10 ? 2 : figure.value < 100 ? 1 : 0;
  char ratio[64] = "";
  if (figure.ratio > 0) {
    std::snprintf(ratio, sizeof ratio, "%.3g x %s", figure.ratio, figure.ratio_to.c_str());
  }
  std::printf("%-34s %12.*f %-4s %-28s %s\n", figure.name.c_str(), decimals, figure.value,
              figure.unit.c_str(), ratio, figure.remark.c_str());
  std::fflush(stdout);
  figures_.push_back(std::move(figure));
}

void Report::write_json(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) die("cannot write the JSON file");
  std::fprintf(file,
               "{\"baseline\":{\"syncs_per_s\":%.1f,\"sha256_mb_per_s\":%.1f,\"echoes_per_s\":%.1f}"
               ",\n\"figures\":[",
               baseline_.syncs, baseline_.sha256_mb, baseline_.echoes);
  const char* separator = "\n";
  for (const Figure& figure : figures_) {
    std::fprintf(file, "%s{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", separator,
                 figure.name.c_str(), figure.value, figure.unit.c_str());
    if (figure.ratio > 0) {
      std::fprintf(file, ",\"ratio\":%.6g,\"ratio_to\":\"%s\"", figure.ratio,
                   figure.ratio_to.c_str());
    }
    if (!figure.remark.empty()) std::fprintf(file, ",\"remark\":\"%s\"", figure.remark.c_str());
    std::fprintf(file, "}");
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

}  // namespace dibs::bench
