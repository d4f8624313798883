#!/usr/bin/env python3
"""An extender of a scheduler, for tests: takes nodes whose label team is that of the pod's annotation, prefers the last by name, drives out whoever
it is told, and has kubectl bind.

    extender.py          prints "port N", then a line for each call: VERB POD NODE...
"""
import http.server
import json
import subprocess


def names(body):
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


def filter_nodes(body):
    team = body["Pod"]["metadata"].get("annotations", {}).get("team")
    fits = [node for node in body["Nodes"]["items"] if team in (None, node["metadata"].get("labels", {}).get("team"))]
    failed = {name: "node(s) of another team" for name in set(names(body)) - {node["metadata"]["name"] for node in fits}}
    return names(body), {"nodes": {"items": fits}, "failedNodes": failed}


def prioritize(body):
    order = sorted(names(body))
    return order, [{"Host": name, "Score": 10 * place // max(1, len(order) - 1)} for place, name in enumerate(order)]


def preempt(body):
    victims = {node: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in found["Pods"]], "NumPDBViolations": found["NumPDBViolations"]}
               for node, found in body["NodeNameToVictims"].items()}
    return sorted(victims), {"NodeNameToMetaVictims": {node: victims[node] for node in sorted(victims)[-1:]}}


def bind(body):
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": body["PodName"], "namespace": body["PodNamespace"]},
               "target": {"kind": "Node", "name": body["Node"]}}
    path = "/api/v1/namespaces/%s/pods/%s/binding" % (body["PodNamespace"], body["PodName"])
    done = subprocess.run(["kubectl", "create", "--raw", path, "-f", "-"], input=json.dumps(binding), capture_output=True, text=True)
    return [body["Node"]], {"Error": done.stderr if done.returncode else ""}


VERBS = {"/filter": filter_nodes, "/prioritize": prioritize, "/preempt": preempt, "/bind": bind}


class Extender(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        nodes, answer = VERBS[self.path](body)
        pod = body["PodName"] if "PodName" in body else body["Pod"]["metadata"]["name"]
        print(self.path[1:], pod, *nodes, flush=True)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    print("port", server.server_port, flush=True)
    server.serve_forever()
