#!/usr/bin/env python3
"""What no part of dibs reads is on the list of docs/effects.md, and nothing else is.

    run.py [ROOT]

A field of a built-in kind counts as read where its name stands as a string in a part that acts: anything under src/ and drivers/ but the rules, the
columns and the schemas of kinds, which judge and show, and tests. A gate counts as read where code or a schema asks for it, a kind where its name or
plural stands so. Names are compared, not paths, so a field may hide behind another of its name; what is found is never a false alarm. Flags, plugins
and settings without effect are those that the code itself has in tables.
"""
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PASSIVE = tuple(os.path.join(ROOT, "src", "api", part) + os.sep for part in ("kinds", "print", "schema"))
# Files of configuration: who reads them refuses what he does not know.
CONFIGURATION = ("kubescheduler.config", "apiserver.config", "pod-security.admission.config", "meta_v1", "groups")
EVERYWHERE = {"apiVersion", "kind", "metadata", "items", "inline"}
RESOURCE_WORDS = {"sub", "verbs", "short", "scope", "prefix", "storage", "releases", "hub", "categories", "singular"}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources(passive):
    for top in ("src", "drivers"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            if (folder + os.sep).startswith(PASSIVE) and not passive:
                continue
            for name in files:
                if name.endswith((".cc", ".h")) and not name.endswith("_test.cc") and not name.startswith("test_"):
                    yield os.path.join(folder, name)


def strings(paths):
    """Every word inside of a string of the code."""
    out = set()
    for path in paths:
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', read(path)):
            out.update(re.findall(r"[A-Za-z0-9]+", text))
    return out


def fields():
    """(type, field) of all built-in kinds."""
    folder = os.path.join(ROOT, "schema")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".schema") or name.startswith(CONFIGURATION):
            continue
        of = ""
        for line in read(os.path.join(folder, name)).splitlines():
            head = re.match(r"(type|amend|resource) (\w+)", line)
            if head:
                of = "" if head.group(1) == "resource" else head.group(2)
                continue
            field = re.match(r"  (\w+)\s+\S", line)
            if of and field and field.group(1) not in EVERYWHERE | RESOURCE_WORDS:
                yield of, field.group(1)


def gates():
    text = read(os.path.join(ROOT, "src", "api", "schema", "features.cc"))
    return re.findall(r'^    \{"(\w+)"', text, re.M)


def kinds(read_words):
    """Those that nobody reads. Questions are answered by the server, whatever their name."""
    folder = os.path.join(ROOT, "schema")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".schema") or name.startswith(CONFIGURATION):
            continue
        for plural, kind, more in re.findall(r"(?m)^resource (\w+) (\w+)\n((?:  .*\n)*)", read(os.path.join(folder, name))):
            verbs = re.search(r"(?m)^  verbs (.*)$", more)
            if not {plural, kind} & read_words and not (verbs and verbs.group(1) == "create"):
                yield kind


def source(*parts):
    return read(os.path.join(ROOT, "src", *parts))


def refused_flags():
    """With what is said instead."""
    return dict(re.findall(r'\{"(--[\w-]+)", "\w*",\s*"([^"]*)"\}', source("cli", "api_flags.cc")))


def idle_plugins():
    return set(re.findall(r'\{"(\w+)", [^{}]*, false, \w+\}', source("scheduler", "plugins.cc")))


def idle_settings():
    told = re.findall(r'child\("(\w+)"\)\.str\(\),\s*" has no effect', source("scheduler", "plugin_args.cc"))
    return set(re.findall(r'Ineffective\{"(\w+)"', source("scheduler", "configuration.cc"))) | set(told)


def table(page, head):
    """The rows of the table of docs/effects.md whose first column has that head, by name."""
    rows = {}
    for line in page.split("\n| %s |" % head)[1].split("\n\n")[0].splitlines():
        cells = line.split(" | ")
        rows.update({name: line for name in re.findall(r"`([\w-]+)`", cells[0])})
    return rows


def compare(what, found, rows):
    return (["%s %s has no effect: tell of it in docs/effects.md" % (what, one) for one in sorted(set(found) - set(rows))] +
            ["docs/effects.md: %s %s has an effect, or is none" % (what, one) for one in sorted(set(rows) - set(found))])


def main():
    read_words = strings(sources(passive=False))
    unread = {"%s.%s" % pair for pair in fields() if pair[1] not in read_words}
    listed = set()
    for of, field in re.findall(r"`(\w+)\.(\w+|\*)`", read(os.path.join(ROOT, "docs", "effects.md"))):
        those = {one for one in unread if one.startswith(of + ".")}
        listed |= those if field == "*" and those else {of + "." + field}
    faults = ["%s is read by no part: give it its effect, refuse it, or tell of it in docs/effects.md" % one for one in sorted(unread - listed)]
    faults += ["docs/effects.md: %s is read, or is no field" % one for one in sorted(listed - unread)]
    asked = strings(path for path in sources(passive=True) if not path.endswith("features.cc"))
    for name in os.listdir(os.path.join(ROOT, "schema")):
        asked.update(re.findall(r"(?:gate|without)=(\w+)", read(os.path.join(ROOT, "schema", name))))
    faults += ["src/api/schema/features.cc: nothing asks for the gate %s" % gate for gate in gates() if gate not in asked]
    page = read(os.path.join(ROOT, "docs", "effects.md"))
    flags = table(page, "flag")
    for what, found, rows in (("the flag", refused_flags(), flags), ("the plugin", idle_plugins(), table(page, "plugin")),
                              ("the setting", idle_settings(), table(page, "setting")), ("the kind", set(kinds(read_words)), table(page, "kind"))):
        if not found:
            faults.append("%s: none is found in the code: has its table changed?" % what)
        faults += compare(what, found, rows)
    faults += ["docs/effects.md: the flag %s: say %r" % (flag, why) for flag, why in refused_flags().items() if why not in flags.get(flag, why)]
    for fault in faults:
        print(fault)
    print("%d fields read by nobody, %d on the list; %d gates" % (len(unread), len(listed), len(gates())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
