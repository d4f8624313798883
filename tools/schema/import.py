#!/usr/bin/env python3
"""Writes schema/*.schema from the facts of the API.

    import.py FACTS_DIR PROTOBUF_TSV OUT_DIR

FACTS_DIR holds one JSON file per group-version (types, fields, URLs), PROTOBUF_TSV the wire side (numbers, pointers, how
Go writes a zero value). What neither says stands in names.py (names, verbs, Go types, enumerations, releases) and
changes.py (what came after the facts). The format is described in docs/formats/schema.md. Python 3 standard library only.
"""
import collections
import glob
import json
import os
import re
import sys

import changes
import names

SCALARS = {
    "string": "string", "string:byte": "bytes", "boolean": "bool", "integer:int32": "int32",
    "integer:int64": "int64", "number:double": "double", "string:date-time": "time",
}
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Duration": "duration",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "fields",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "json",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "schema-or-array",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
}
# Go structs: omitempty has no effect on them, so a value of these is always written.
STRUCT_LIKE = {"quantity", "int-or-string", "time", "micro-time", "duration", "raw", "json"}
WRAPPED = {"ExtraValue", "Verbs"}


def package_of(full):
    """("core/v1", "Pod") of io.k8s.api.core.v1.Pod."""
    head, _, name = full.rpartition(".")
    parts = head.split(".")
    return parts[-2] + "/" + parts[-1], name


class Import:
    def __init__(self, facts_dir, tsv):
        self.types = {}      # full name -> facts
        self.versions = []   # facts files
        self.wire = collections.defaultdict(dict)  # (package, message) -> json name -> row
        for path in sorted(glob.glob(os.path.join(facts_dir, "*.json"))):
            facts = json.load(open(path))
            self.versions.append(facts)
            for full, facts_of_type in facts["types"].items():
                known = self.types.get(full)
                if known is None or len(facts_of_type.get("fields", {})) > len(known.get("fields", {})):
                    self.types[full] = facts_of_type
        for line in open(tsv):
            if line.startswith("#"):
                continue
            package, message, number, name, card, kind, pointer, zero = line.rstrip("\n").split("\t")
            if number == "-":
                self.wire[(package, message)] = {}
                continue
            self.wire[(package, message)][name] = dict(
                number=int(number), card=card, type=kind, pointer=pointer == "p", zero=zero)
        for key, rows in names.WIRE.items():
            for name, (number, card, kind, pointer, zero) in rows.items():
                self.wire[key][name] = dict(number=number, card=card, type=kind, pointer=pointer, zero=zero)
        self.packages = collections.defaultdict(dict)  # package -> type name -> Type
        for full in sorted(self.types):
            self.add_type(full)
        self.add_parts()
        changes.apply(self.packages)

    # A type is {"full", "flags": [...], "inline": [(part, number)], "fields": {name: {...}}}.
    def add_type(self, full):
        facts = self.types[full]
        if full in SPECIAL or full in names.LEFT_OUT:
            return
        package, name = package_of(full)
        flags = []
        if facts.get("kind") or full in names.KINDS:
            flags.append("kind")
        if facts.get("mapType") == "atomic":
            flags.append("atomic")
        rows = self.wire.get((package, name), {})
        inline = [(self.part_name(package, r["type"]), r["number"]) for r in rows.values() if r["zero"] == "inline"]
        inlined = set()
        for part, _ in inline:
            inlined |= self.flat_names(package, part)
        fields = {}
        for field, f in facts.get("fields", {}).items():
            if field in inlined and field not in rows:
                continue
            if field in ("kind", "apiVersion") and field not in rows:
                fields[field] = dict(type="string", number=0, pointer=False, zero="omit", flags=[])
                continue
            fields[field] = self.field(package, name, field, f, rows.get(field))
        self.packages[package][name] = dict(full=full, flags=flags, inline=inline, fields=fields)

    def part_name(self, package, kind):
        return kind.split(":")[-1]

    def flat_names(self, package, part):
        found = set()
        for name, row in self.wire[(package, part)].items():
            if row["zero"] == "inline":
                found |= self.flat_names(package, row["type"])
            else:
                found.add(name)
        return found

    def add_parts(self):
        """Messages that exist on the wire only: their fields stand in the JSON of the type that holds them."""
        wanted = []
        for package, types in list(self.packages.items()):
            for name, t in list(types.items()):
                for part, _ in t["inline"]:
                    wanted.append((package, name, part))
        while wanted:
            package, holder, part = wanted.pop()
            if part in self.packages[package] and "part" not in self.packages[package][part]["flags"]:
                continue
            known = self.packages[package].get(part)
            holder_full = self.packages[package][holder]["full"]
            facts = self.types.get(holder_full, {}).get("fields", {})
            facts = facts or self.facts_by_name(package, holder)
            rows = self.wire[(package, part)]
            inline = [(r["type"], r["number"]) for r in rows.values() if r["zero"] == "inline"]
            fields = {n: self.field(package, part, n, facts[n], r) for n, r in rows.items() if n in facts}
            if known and len(known["fields"]) >= len(fields):
                continue
            prefix = holder_full.rpartition(".")[0]
            full = prefix + "." + part
            self.types.setdefault(full, {"fields": facts})
            self.packages[package][part] = dict(full=full, flags=["part"], inline=inline, fields=fields)
            wanted += [(package, part, p) for p, _ in inline]

    def facts_by_name(self, package, name):
        for full, t in self.types.items():
            if package_of(full) == (package, name):
                return t.get("fields", {})
        return {}

    def type_text(self, package, kind):
        if kind.startswith("[]"):
            return "[]" + self.type_text(package, kind[2:])
        if kind.startswith("map[string]"):
            return "{}" + self.type_text(package, kind[len("map[string]"):])
        if kind in SCALARS:
            return SCALARS[kind]
        if kind in SPECIAL:
            return SPECIAL[kind]
        other, name = package_of(kind)
        return name if other == package else other + "." + name

    def field(self, package, type_name, name, facts, row):
        text = self.type_text(package, facts["type"])
        f = dict(type=text, number=0, pointer=False, zero="omit", flags=[])
        if row:
            f.update(number=row["number"], pointer=row["pointer"], zero=row["zero"])
            if row["type"].split(",")[-1].split(":")[-1] in WRAPPED:
                f["flags"].append("wrapped")
            base = text.lstrip("[]{}")
            struct = not text.startswith(("[]", "{}")) and (base in STRUCT_LIKE or base[0].isupper() or "." in base)
            if struct and not row["pointer"] and (package, type_name, name) not in names.OMIT_ZERO:
                f["zero"] = "keep"
        else:
            f.update(names.PLAIN.get((package, type_name, name), {}))
        if f["zero"] == "?":
            f["zero"] = "keep"
        flags = f["flags"]
        if facts.get("required"):
            flags.append("required")
        list_type = facts.get("listType")
        if list_type == "set":
            flags.append("set")
        elif list_type == "map":
            flags.append("keys=" + ",".join(facts["mapKeys"]))
        strategy = facts.get("patchStrategy", "").split(",")
        if "merge" in strategy:
            key = facts.get("patchMergeKey")
            flags.append("merge=" + key if key else "merge")
        if "retainKeys" in strategy:
            flags.append("retain-keys")
        if facts.get("mapType") in ("atomic", "granular"):
            flags.append(facts["mapType"])
        default = facts.get("default")
        if default not in (None, 0, False, ""):
            flags.append("default=" + json.dumps(default))
        go = names.GO_TYPES.get((package, type_name, name)) or names.GO_TYPES.get(("*", type_name, name))
        if go:
            flags.append("go=" + go)
            enum = names.ENUMS.get((package.split("/")[0], go.split(".")[-1]))
            if enum:
                flags.append("enum=" + ",".join(enum))
        return f

    def resources(self, facts):
        """plural -> resource, from the URLs."""
        found = {}
        for path, verbs in facts["paths"].items():
            m = re.match(r"/(?:api/v1|apis/[^/]+/[^/]+)/(.*)", path)
            rest = m.group(1)
            namespaced = rest.startswith("namespaces/{namespace}/")
            if namespaced:
                rest = rest[len("namespaces/{namespace}/"):]
            parts = rest.split("/")
            plural = parts[0]
            if plural in names.NOT_SERVED:
                continue
            r = found.setdefault(plural, dict(kind=None, namespaced=False, verbs=set(), subs={}))
            if namespaced:
                r["namespaced"] = True
            actions = [a.split(" ") for a in verbs.values()]
            if len(parts) > 2:
                if parts[2] == "proxy":
                    if len(parts) == 3:
                        verbs_of_all = {"create", "delete", "get", "patch", "update"}
                        r["subs"]["proxy"] = dict(kind=actions[0][1], verbs=verbs_of_all)
                    continue
                sub = r["subs"].setdefault(parts[2], dict(kind=actions[0][1], verbs=set()))
                for method, (action, _) in zip(verbs, actions):
                    verb = {"post": "create", "put": "update", "connect": {"get": "get", "post": "create"}.get(method)}.get(action, action)
                    if verb:
                        sub["verbs"].add(verb)
            else:
                for action, kind in actions:
                    r["kind"] = kind
                    r["verbs"].add({"post": "create", "put": "update"}.get(action, action))
                    if action == "list":
                        r["verbs"].add("watch")
        return found


def package_for(facts):
    group = facts["group"]
    short = "core" if group in ("", "core") else group.split(".")[0]
    return short + "/" + facts["version"]


def write_resources(out, facts, resources, group):
    version = facts["version"]
    for plural in sorted(resources):
        r = resources[plural]
        key = (group, plural)
        out.append("")
        out.append("resource %s %s" % (plural, r["kind"]))
        out.append("  singular %s" % r["kind"].lower())
        out.append("  scope %s" % ("namespaced" if r["namespaced"] else "cluster"))
        if key in names.SHORT_NAMES:
            out.append("  short %s" % " ".join(names.SHORT_NAMES[key]))
        if key in names.CATEGORIES:
            out.append("  categories %s" % " ".join(names.CATEGORIES[key]))
        out.append("  verbs %s" % " ".join(sorted(r["verbs"])))
        if "list" in r["verbs"]:
            out.append("  prefix %s" % names.PREFIXES.get((group, version, plural), names.PREFIXES.get((group, plural), plural)))
            storage = names.STORAGE.get((group, plural), version)
            if storage != version:
                out.append("  storage %s" % storage)
            hub = names.HUBS.get((group, version, plural), names.HUBS.get((group, plural)))
            if hub and hub != (group, version):
                out.append("  hub %s" % "/".join(filter(None, hub)))
        for sub in sorted(r["subs"]):
            kind = names.SUB_KINDS.get(r["subs"][sub]["kind"], r["subs"][sub]["kind"])
            out.append("  sub %s %s %s" % (sub, kind, " ".join(sorted(r["subs"][sub]["verbs"]))))


def write_types(out, types, untold):
    for name in sorted(types):
        t = types[name]
        out.append("")
        out.append(" ".join(["type", name] + t["flags"]))
        for part, number in t["inline"]:
            out.append("  inline %s %d%s" % (part, number, " untold" if untold else ""))
        width = max([len(n) for n in t["fields"]] or [0])
        kinds = {n: ("*" if f["pointer"] else "") + f["type"] for n, f in t["fields"].items()}
        kind_width = max([len(k) for k in kinds.values()] or [0])
        for field in sorted(t["fields"]):
            f = t["fields"][field]
            flags = list(f["flags"])
            struct = not f["pointer"] and not f["type"].startswith(("[]", "{}")) and (
                f["type"] in STRUCT_LIKE or f["type"][0].isupper() or "." in f["type"])
            if struct and f["zero"] == "omit":
                flags.insert(0, "omit")
            if not struct and f["zero"] == "keep":
                flags.insert(0, "keep")
            number = str(f["number"]) if f["number"] else "-"
            line = "  %s %s %2s %s" % (field.ljust(width), kinds[field].ljust(kind_width), number, " ".join(flags))
            out.append(line.rstrip())


def main():
    facts_dir, tsv, out_dir = sys.argv[1:]
    data = Import(facts_dir, tsv)
    prefixes = {}
    for package, types in data.packages.items():
        for t in types.values():
            prefixes[package] = t["full"].rpartition(".")[0]
    served = {}
    for facts in data.versions:
        served[package_for(facts)] = facts
    for package in changes.NEW_VERSIONS:
        served[package] = changes.NEW_VERSIONS[package]
    for package in sorted(set(data.packages) | set(served)):
        types = data.packages[package]
        facts = served.get(package)
        short, version = package.split("/")
        group = names.GROUPS.get(short, "" if short in ("core", "meta") else short)
        out = ["package %s %s" % (package, prefixes[package])]
        if package == "meta/v1":
            out.append("# Shared by all groups; its kinds exist in every group-version.")
        else:
            out.append("group %s %s" % (group or '""', version))
        release = names.RELEASES.get(package)
        if release:
            out.append("releases %s" % release)
        if facts:
            resources = data.resources(facts)
            changes.resources(package, resources)
            write_resources(out, facts, resources, group)
        write_types(out, types, package in names.UNTOLD)
        name = ("core" if short == "core" else short if short == "meta" else group) + "_" + version
        with open(os.path.join(out_dir, name + ".schema"), "w") as f:
            f.write("\n".join(out) + "\n")
    with open(os.path.join(out_dir, "groups.schema"), "w") as f:
        f.write("# Groups in the order of discovery, with their versions, the preferred one first.\n")
        for group, versions in names.GROUP_ORDER:
            f.write("order %s %s\n" % (group or '""', " ".join(versions)))


if __name__ == "__main__":
    main()
