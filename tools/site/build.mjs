// build.mjs ROOT OUT COMMANDS: the documents of ROOT as a site in OUT, in English and, below zh/, in Chinese. COMMANDS is the file that
// `dibs man --format markdown` writes.
//
// Which pages there are, in which order and under which headings, is said by docs/README.md and docs/README.zh.md: each row of their tables
// begins with a link. What pages link to is taken along, other documents as pages and sources as text. A page without a Chinese version
// stands below zh/ in English, with a note.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import MarkdownIt from "markdown-it";
import { escape, frame } from "./frame.mjs";

const [root, out, commandsFile] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const kCommands = "docs/commands.md";
const languages = JSON.parse(readFileSync(join(here, "words.json"), "utf8"));
const kImage = /\.(png|svg)$/;
/// A page with so many headings begins with a list of them.
const kManyParts = 8;
const kElsewhere = /^([a-z]+:|\/\/)/i;

const isDocument = (path) => path.endsWith(".md");
const isChinese = (path) => path.endsWith(".zh.md");
const english = (path) => path.replace(/\.zh\.md$/, ".md");
const chinese = (path) => path.replace(/\.md$/, ".zh.md");
const exists = (path) => path === kCommands || existsSync(join(root, path));
const read = (path) => readFileSync(path === kCommands ? commandsFile : join(root, path), "utf8");

function fail(message) {
  console.error(`site: ${message}`);
  process.exit(1);
}

/// Where the page of a file lies in the site, below the folder of its language.
function place(path) {
  if (path === "README.md") return "index.html";
  if (path === "docs/README.md") return "contents.html";
  const short = path.replace(/^docs\//, "");
  if (!isDocument(short)) return `${short}.html`;
  return short.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
}

const below = (language, where) => (language === "en" ? where : `${language}/${where}`);

/// The file that `link`, written in the document `from`, leads to: a folder stands for its README.
function target(from, link) {
  const path = normalize(join(dirname(from), decodeURI(link))).replace(/\/$/, "");
  if (path.startsWith("..") || !exists(path)) fail(`${from}: link to ${link}, which is not there`);
  return path !== kCommands && statSync(join(root, path)).isDirectory()
    ? join(path, "README.md")
    : path;
}

/// As GitHub names headings.
const slug = (title) =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");

const markdown = new MarkdownIt({ html: true });
const textOf = (token) =>
  token.children.map((one) => (one.type === "softbreak" ? " " : one.content)).join("");

/// What a terminal shows: its commands stand out from what they print.
const code = (text) =>
  escape(text).replace(/^(\$|#) (.*)$/gm, '<b class="prompt">$1</b> <b>$2</b>');
markdown.renderer.rules.code_block = (tokens, at) =>
  `<pre tabindex="0"><code>${code(tokens[at].content)}</code></pre>\n`;
markdown.renderer.rules.fence = (tokens, at) => {
  const text = tokens[at].content;
  return `<pre tabindex="0"><code>${tokens[at].info === "console" ? code(text) : escape(text)}</code></pre>\n`;
};
markdown.renderer.rules.table_open = () => '<div class="wide" tabindex="0"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";

/// The names of a document's headings, in order: a name that is taken gets a number.
function anchors(tokens) {
  const taken = new Map();
  return tokens
    .filter((_, at) => tokens[at - 1]?.type === "heading_open")
    .map((token) => {
      const name = slug(textOf(token));
      const before = taken.get(name) ?? 0;
      taken.set(name, before + 1);
      return before ? `${name}-${before}` : name;
    });
}

/// A page in English leads to its heading; in Chinese the one at the same place is called otherwise.
function inChinese(path, anchor) {
  const [theirs, own] = [path, chinese(path)].map((one) => anchors(markdown.parse(read(one), {})));
  return own.includes(anchor) ? anchor : (own[theirs.indexOf(anchor)] ?? anchor);
}

/// The page of a document: its title, its body with the links of the site, and its sections for the search.
function render(path, language, wanted) {
  const tokens = markdown.parse(read(path), {});
  const ids = anchors(tokens);
  const sections = [];
  let title = "";
  for (const [at, token] of tokens.entries()) {
    if (token.type === "heading_open") {
      const text = textOf(tokens[at + 1]);
      const id = ids[sections.length];
      token.attrSet("id", id);
      if (!title) title = text;
      sections.push({ heading: text, id, text: "", isPart: token.tag === "h2" });
    } else if (
      sections.length &&
      token.type === "inline" &&
      tokens[at - 1].type !== "heading_open"
    ) {
      sections.at(-1).text += ` ${textOf(token)}`;
    } else if (sections.length && (token.type === "fence" || token.type === "code_block")) {
      sections.at(-1).text += ` ${token.content}`;
    }
  }
  const origin = dirname(below(language, place(english(path))));
  const lead = (link) => {
    if (kElsewhere.test(link) || link.startsWith("#")) return link;
    const [file, anchor] = link.split("#");
    const to = target(path, file);
    if (kImage.test(to)) {
      wanted.images.add(to);
      return relative(origin, to) || to;
    }
    wanted.files.add(english(to));
    // A document leads to the other one of its pair, everything else stays in the reader's language.
    const other = isChinese(to) ? "zh" : isChinese(path) && to === english(path) ? "en" : language;
    const way = relative(origin, below(other, place(english(to))));
    if (anchor === undefined) return way;
    const translated = other === "zh" && isDocument(to) && exists(chinese(english(to)));
    return `${way}#${translated ? encodeURIComponent(inChinese(english(to), decodeURIComponent(anchor))) : anchor}`;
  };
  const body = markdown.renderer
    .render(tokens, markdown.options, {})
    .replace(/<!--[\s\S]*?-->\n?/g, "")
    // The head of every page leads to the other language.
    .replace(/<p><a href="[^"]*">(English|中文)<\/a><\/p>\n/, "")
    .replace(
      / (href|src|srcset)="([^"]*)"/g,
      (_, name, link) => ` ${name}="${escape(lead(link))}"`,
    );
  const parts = sections.filter((section) => section.isPart);
  if (parts.length < kManyParts) return { title, body, sections };
  const links = parts.map(({ heading, id }) => `<a href="#${id}">${escape(heading)}</a>`);
  const list = `<nav class="parts" aria-label="${escape(title)}">${links.join("\n")}</nav>\n`;
  return { title, body: body.replace("</h1>\n", `</h1>\n${list}`), sections };
}

function renderSource(path) {
  return {
    title: path,
    body: `<h1>${escape(path)}</h1>\n<pre tabindex="0"><code>${escape(read(path))}</code></pre>\n`,
    sections: [],
  };
}

/// Sections of pages, as docs/README.md has them: [{title, pages: [{title, path}]}].
function navigation(path) {
  const tokens = markdown.parse(read(path), {});
  const found = [];
  for (const [at, token] of tokens.entries()) {
    if (token.type === "heading_open" && token.tag === "h2") {
      found.push({ title: textOf(tokens[at + 1]), pages: [] });
    } else if (token.type === "tr_open" && tokens[at + 1].type === "td_open") {
      const link = tokens[at + 2].children.findIndex((one) => one.type === "link_open");
      if (link < 0 || !found.length)
        fail(`${path}: a row without a link, or above the first heading`);
      const [opened, text] = tokens[at + 2].children.slice(link);
      const to = english(target(path, opened.attrGet("href").split("#")[0]));
      found.at(-1).pages.push({ title: text.content, path: to });
    }
  }
  if (!found.length) fail(`${path}: no headings`);
  return found;
}

const kIndex = "search-index.js";
// Only what was made here is removed.
if (existsSync(out) && readdirSync(out).length && !existsSync(join(out, kIndex))) {
  fail(`${out}: is neither empty nor a site`);
}
rmSync(out, { recursive: true, force: true });
const wanted = { files: new Set(["README.md", "docs/README.md"]), images: new Set() };
const menus = { en: navigation("docs/README.md"), zh: navigation("docs/README.zh.md") };
for (const language of Object.keys(languages)) {
  const menu = menus[language];
  const reference = menu.find((section) =>
    section.pages.some((page) => page.path === "docs/flags.md"),
  );
  reference.pages.unshift({ title: languages[language].commands, path: kCommands });
  for (const section of menu) for (const page of section.pages) wanted.files.add(page.path);

  const index = [];
  // The set grows while its documents are read.
  for (const path of wanted.files) {
    const own = language === "zh" && isDocument(path) && exists(chinese(path));
    const source = own ? chinese(path) : path;
    const page = isDocument(path) ? render(source, language, wanted) : renderSource(path);
    const where = below(language, place(path));
    const isTranslated = own || language === "en" || !isDocument(path);
    mkdirSync(join(out, dirname(where)), { recursive: true });
    writeFileSync(
      join(out, where),
      frame({ ...page, language, languages, menu, path, where, place, below, isTranslated }),
    );
    for (const { heading, id, text } of page.sections) {
      index.push([page.title, heading, `${place(path)}#${id}`, text.replace(/\s+/g, " ").trim()]);
    }
  }
  // A script, because a page that was opened from a file may not fetch.
  writeFileSync(
    join(out, below(language, kIndex)),
    `globalThis.searchIndex = ${JSON.stringify(index)};\n`,
  );
}
for (const image of wanted.images) cpSync(join(root, image), join(out, image));
for (const asset of ["style.css", "search.js"]) cpSync(join(here, asset), join(out, asset));
console.log(
  `${join(out, "index.html")}: ${wanted.files.size} pages in ${Object.keys(languages).length} languages`,
);
