// Packs what vite wrote in dist/ into dist/page_assets.cc, which src/server/page_assets.h declares.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const types = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

function filesOf(folder, prefix = "") {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? filesOf(`${folder}/${entry.name}`, `${prefix}${entry.name}/`)
      : [prefix + entry.name],
  );
}

const names = filesOf("dist")
  .filter((name) => !name.endsWith(".cc"))
  .sort();
let arrays = "";
let rows = "";
names.forEach((name, index) => {
  const type = types[name.split(".").pop()];
  if (!type) throw new Error(`${name}: of which type is it?`);
  const bytes = readFileSync(`dist/${name}`);
  const packed = gzipSync(bytes, { level: 9 });
  const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
  const lines = [];
  for (let at = 0; at < packed.length; at += 32)
    lines.push(Array.from(packed.subarray(at, at + 32)).join(","));
  arrays += `constexpr unsigned char kBytes${index}[] = {\n${lines.join(",\n")}};\n`;
  rows += `    {"${name}", "${type}", "\\"${etag}\\"", view(kBytes${index}, sizeof kBytes${index})},\n`;
});
writeFileSync(
  "dist/page_assets.cc",
  `#include "server/page_assets.h"

namespace dibs::server {
namespace {

${arrays}
std::string_view view(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::span<const PageAsset> page_assets() {
  static const PageAsset kAssets[] = {
${rows}  };
  return kAssets;
}

}  // namespace dibs::server
`,
);
