#!/usr/bin/env python3
"""The site of the documents (`make site`).

    run.py links|browser

links: builds it and follows every link in both languages; every document of docs/ is in both menus, every Chinese one is used, has the commands, code,
headings and tables of its English one, and pages without one say so. Needs npm and its packages. browser: opens it from the disk in Chromium (browser.mjs), as
tests/page does. Where something needed cannot be had, the test is skipped (exit status 77).
"""
import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(HERE, "..", folder) for folder in ("support", "e2e")]
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run as e2e  # noqa: E402

SKIPPED = 77
UNAVAILABLE = 69  # what tools/site/make ends with where npm cannot do its part


class Missing(Exception):
    """A tool or a package that is not to be had here."""


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids, self.menu, self.language, self.note = [], [], set(), [], None, False
        self.inside = []
        self.problems = []
        with open(path) as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attributes):
        has = dict(attributes)
        if tag == "html":
            self.language = has.get("lang")
        if tag == "details" and has.get("class") == "menu":
            self.inside.append("menu")
        if has.get("class") == "note":
            self.note = True
        if "id" in has:
            if has["id"] in self.ids:
                self.problems.append("the id %s twice" % has["id"])
            self.ids.add(has["id"])
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
            if self.inside:
                self.menu.append(has["href"])
        elif tag == "link" and has.get("rel") == "alternate":
            self.links.append(has["href"])
        else:
            self.loads += [has[name] for name in ("href", "src", "srcset", "data-index") if name in has]

    def handle_endtag(self, tag):
        if tag == "details" and self.inside:
            self.inside.pop()


def build(out):
    done = subprocess.run([os.path.join(ROOT, "tools/site/make"), cluster.binary(), out], capture_output=True, text=True)
    if done.returncode == UNAVAILABLE:
        raise Missing(done.stderr.strip()[-600:])
    if done.returncode:
        raise cluster.Failure("tools/site/make: status %d\n%s" % (done.returncode, done.stderr[-3000:]))


def documents():
    """Those of docs/ in English, as names in the site."""
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    return {os.path.relpath(path, os.path.join(ROOT, "docs"))[:-3] for path in found if not path.endswith(".zh.md")}


def check_links(out):
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(out) for name in names]
    found = {path: Page(path) for path in paths if path.endswith(".html")}
    problems = ["%s: %s" % (path, problem) for path, page in found.items() for problem in page.problems]
    followed = 0
    for path, page in found.items():
        for link in page.loads:
            if not link.startswith("data:") and not os.path.isfile(os.path.join(os.path.dirname(path), link)):
                problems.append("%s loads %s, which is not of the site" % (path, link))
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            followed += 1
            if parts.scheme or target not in found:
                problems.append("%s: link to %s, which is not there" % (path, link))
            elif parts.fragment and urllib.parse.unquote(parts.fragment) not in found[target].ids:
                problems.append("%s: link to %s, which has no such heading" % (path, link))
    for path in paths:
        if path.endswith((".css", ".js", ".svg")) and re.search(r"(url\(|import |fetch\(|href=)[\"']?(https?:)?//", open(path).read()):
            problems.append("%s asks others for something" % path)
    print("%d pages, %d links" % (len(found), followed))
    return found, problems


def check_languages(out, found):
    problems = []
    for language, folder, name in (("en", "", "README.md"), ("zh-CN", "zh", "README.zh.md")):
        start = os.path.join(out, folder, "index.html")
        menu = {os.path.relpath(os.path.join(os.path.dirname(start), link), os.path.join(out, folder)) for link in found[start].menu}
        for document in documents() | {"commands"}:
            place = "contents.html" if document == "README" else document + ".html"
            if place not in menu:
                problems.append("docs/%s.md is not in docs/%s" % (document, name))
        for path, page in found.items():
            if (os.path.relpath(path, out).split(os.sep)[0] == "zh") == (folder == "zh") and page.language != language:
                problems.append("%s is in %s" % (path, page.language))
    for path, page in found.items():
        own = os.path.relpath(path, out)
        other = os.path.join(out, own[3:] if own.startswith("zh" + os.sep) else os.path.join("zh", own))
        if os.path.relpath(other, os.path.dirname(path)) not in page.links:
            problems.append("%s does not lead to itself in the other language" % path)
    for document in documents():
        page = found[os.path.join(out, "zh", "contents.html" if document == "README" else document + ".html")]
        if page.note == os.path.exists(os.path.join(ROOT, "docs", document + ".zh.md")):
            problems.append("docs/%s.md in Chinese: a note of English text %s" % (document, "too many" if page.note else "is missing"))
        problems += filter(None, [e2e.translation_differs(os.path.join(ROOT, "docs", document + ".md"))])
    return problems


def shape(path):
    """What a page has in any language: its blocks of code, the levels of its headings, the rows of its tables."""
    with open(path) as f:
        text = f.read()
    # What is indented right below a line goes on with that, in a list.
    block = re.compile(r"^```.*?^```$|(?<=\n\n)(?:^    [^\n]*\n(?:\n(?=    ))?)+", re.M | re.S)
    rest = block.sub("", text)
    return {"blocks of code": [found.strip("\n") for found in block.findall(text)], "headings": re.findall(r"^#+ ", rest, re.M),
            "rows of tables": len(re.findall(r"^\|", rest, re.M))}


def check_shapes():
    """Each document in Chinese has what its English one has."""
    problems = []
    for path in glob.glob(os.path.join(ROOT, "docs", "**", "*.zh.md"), recursive=True):
        theirs, mine = shape(path), shape(path[:-len(".zh.md")] + ".md")
        problems += ["%s has other %s than the English page" % (path, what) for what in mine if mine[what] != theirs[what]]
    return problems


def check_commands(out):
    """The page of commands has what --help has."""
    with open(os.path.join(out, "commands.html")) as f:
        text = f.read()
    said = subprocess.run([cluster.binary(), "up", "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", said)) - {"--help"}
    return ["commands.html does not have %s of dibs up --help" % flag for flag in sorted(flags) if flag not in text] if flags else ["no flags in --help"]


def run_browser(out):
    sys.path.insert(0, os.path.join(HERE, "..", "page"))
    # Both are called run.py.
    sys.modules.pop("run")
    import run as page
    try:
        chromium, folder = page.chromium(), page.prepare()
    except page.Missing as why:
        raise Missing(str(why))
    shutil.copy(os.path.join(HERE, "browser.mjs"), os.path.join(folder, "site.mjs"))
    shots = os.path.join(folder, "site-shots")
    os.makedirs(shots, exist_ok=True)
    done = subprocess.run(["node", "site.mjs"], cwd=folder, env=dict(os.environ, SITE=out, CHROMIUM=chromium, SHOTS=shots),
                          capture_output=True, text=True, timeout=280)
    print(done.stdout, end="")
    if done.returncode:
        raise cluster.Failure("the browser's test failed, status %d\n%s" % (done.returncode, done.stderr[-4000:]))


def main(arguments):
    if arguments not in (["links"], ["browser"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        # In a folder whose name has to be quoted in links.
        with tempfile.TemporaryDirectory(prefix="dibs site %-") as out:
            build(out)
            if arguments == ["browser"]:
                run_browser(out)
            else:
                found, problems = check_links(out)
                problems += check_languages(out, found) + check_shapes() + check_commands(out)
                if problems:
                    raise cluster.Failure("\n".join(problems))
    except Missing as why:
        print("skipped: %s" % why)
        return SKIPPED
    except cluster.Failure as failure:
        print("FAILED: %s" % failure)
        return 1
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
