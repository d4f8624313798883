// What is around the text of a page: head, menu, search, the switch of languages.

import { dirname, relative } from "node:path";

export const escape = (text) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/// `page` has title and body; `path` is the file it was made of, `where` its place in the site; `languages` has the words of each.
export function frame(page) {
  const { title, body, language, languages, menu, path, where, place, below, isTranslated } = page;
  const words = languages[language];
  const to = (target) => escape(relative(dirname(where), target));
  const entry = (file, text) =>
    `<a href="${to(below(language, place(file)))}"${file === path ? ' aria-current="page"' : ""}>${escape(text)}</a>`;

  const sections = menu.map(
    (section) =>
      `<h2>${escape(section.title)}</h2>\n<ul>\n${section.pages
        .map((one) => `<li>${entry(one.path, one.title)}</li>`)
        .join("\n")}\n</ul>`,
  );
  const others = Object.keys(languages).filter((one) => one !== language);
  const switches = others.map(
    (one) =>
      `<a href="${to(below(one, place(path)))}" lang="${one}" hreflang="${one}">${languages[one].name}</a>`,
  );

  const order = menu.flatMap((section) => section.pages);
  const at = order.findIndex((one) => one.path === path);
  const step = (one, word) =>
    one ? `<p><small>${word}</small>${entry(one.path, one.title)}</p>` : "<p></p>";
  const steps =
    at < 0
      ? ""
      : `<nav class="steps" aria-label="${words.next}">${step(order[at - 1], words.previous)}${step(order[at + 1], words.next)}</nav>`;
  const text = isTranslated
    ? body
    : `<p class="note">${words.untranslated}</p>\n<div lang="en">\n${body}</div>\n`;

  return `<!doctype html>
<html lang="${words.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title === words.title ? title : `${title} · ${words.title}`)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to("style.css")}">
${others.map((one) => `<link rel="alternate" hreflang="${one}" href="${to(below(one, place(path)))}">`).join("\n")}
<script src="${to("search.js")}" data-index="${to(below(language, "search-index.js"))}" data-nothing="${words.nothing}" defer></script>
</head>
<body>
<a class="skip" href="#_text">${words.skip}</a>
<header>
<a class="name" href="${to(below(language, "index.html"))}">dibs</a>
<search>
<input type="search" placeholder="${words.search}" aria-label="${words.search}" autocomplete="off">
<ol id="_found" hidden></ol>
</search>
<nav class="languages">${switches.join(" ")}</nav>
</header>
<details class="menu" open>
<summary>${words.menu}</summary>
<nav aria-label="${words.menu}">
<p>${entry("docs/README.md", words.contents)}</p>
${sections.join("\n")}
</nav>
</details>
<main id="_text">
${text}${steps}
</main>
</body>
</html>
`;
}
