// The search of the site: all words of the query must stand in a section. Its index is loaded when somebody begins to search.
// Nothing else of the site needs a script, but that the menu is closed where it would cover a small screen.

const own = document.currentScript;

addEventListener("DOMContentLoaded", () => {
  if (matchMedia("(max-width: 52rem)").matches) {
    document.querySelector(".menu").removeAttribute("open");
  }
  document.querySelector('.menu a[aria-current="page"]')?.scrollIntoView({ block: "nearest" });

  const input = document.querySelector("search input");
  const list = document.getElementById("_found");
  const base = new URL(".", new URL(own.dataset.index, location.href));

  const find = (query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length || !globalThis.searchIndex) return [];
    const found = [];
    for (const [title, heading, place, text] of globalThis.searchIndex) {
      const head = heading.toLowerCase();
      const body = text.toLowerCase();
      const all = `${title.toLowerCase()} ${head} ${body}`;
      if (!words.every((word) => all.includes(word))) continue;
      const rank = words.filter((word) => head.includes(word)).length;
      const at = Math.max(0, ...words.map((word) => body.indexOf(word) - 40));
      found.push({ title, heading, place, rank, part: text.slice(at, at + 120) });
    }
    return found.sort((a, b) => b.rank - a.rank).slice(0, 20);
  };

  const show = () => {
    const entries = find(input.value).map(({ title, heading, place, part }) => {
      const link = document.createElement("a");
      link.href = new URL(place, base);
      link.textContent = heading === title ? title : `${title} · ${heading}`;
      const more = document.createElement("small");
      more.textContent = part;
      link.append(more);
      return link;
    });
    if (!entries.length && input.value.trim()) {
      const none = document.createElement("p");
      none.textContent = own.dataset.nothing;
      entries.push(none);
    }
    list.replaceChildren(
      ...entries.map((entry) => {
        const item = document.createElement("li");
        item.append(entry);
        return item;
      }),
    );
    list.hidden = !entries.length;
  };

  const load = () => {
    const script = document.createElement("script");
    script.src = own.dataset.index;
    script.onload = show;
    document.head.append(script);
  };

  input.addEventListener("focus", load, { once: true });
  input.addEventListener("input", show);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.hidden = true;
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
  addEventListener("click", (event) => {
    if (!event.target.closest("search")) list.hidden = true;
  });
});
