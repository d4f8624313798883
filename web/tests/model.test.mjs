// What the views are computed from, over objects as servers of several releases send them.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { buildSync } from "esbuild";

// One bundle of both, so that they share what they share in the page.
const bundled = buildSync({
  stdin: {
    contents:
      'export * from "./src/model"; export * from "./src/cluster"; export * from "./src/history";',
    resolveDir: ".",
    loader: "ts",
  },
  bundle: true,
  write: false,
  format: "esm",
});
const text = Buffer.from(bundled.outputFiles[0].contents).toString("base64");
const { bytesText, emptyCluster, makeModel, put, UsageHistory, classOf, isOpaque } = await import(
  `data:text/javascript;base64,${text}`
);

const meta = (name, more = {}) => ({
  name,
  uid: `u-${name}`,
  creationTimestamp: "2026-01-01T00:00:00Z",
  ...more,
});
const node = (name, ready = "True") => ({
  metadata: meta(name),
  status: { conditions: [{ type: "Ready", status: ready }] },
});
const slice = (name, on, devices, generation = 1) => ({
  metadata: meta(name),
  spec: { driver: "d", nodeName: on, pool: { name: on, generation }, devices },
});
const result = (pool, device, more = {}) => ({ request: "r", driver: "d", pool, device, ...more });
const claim = (name, results, more = {}) => ({
  metadata: meta(name, { namespace: "ns" }),
  spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "c" } }] } },
  status: {
    allocation: { allocationTimestamp: "2026-01-01T00:00:02Z", devices: { results } },
    ...more,
  },
});

function cluster(objects) {
  const made = emptyCluster();
  for (const [kind, list] of Object.entries(objects)) {
    const table = {
      nodes: "nodes",
      pods: "pods",
      claims: "claims",
      slices: "slices",
      rules: "rules",
      events: "events",
      explained: "explained",
    }[kind];
    for (const one of list) {
      made[table].set(
        one.metadata.namespace
          ? `${one.metadata.namespace}/${one.metadata.name}`
          : one.metadata.name,
        one,
      );
    }
  }
  return made;
}

const states = (model) => Object.fromEntries(model.devices.map((one) => [one.id, one.state]));

test("devices are free, held, tainted or unhealthy", () => {
  const model = makeModel(
    cluster({
      nodes: [node("n"), node("gone", "Unknown")],
      slices: [
        slice("s", "n", [
          { name: "a" },
          { name: "b" },
          { name: "c", taints: [{ key: "k", effect: "NoSchedule" }] },
          { name: "e" },
        ]),
        slice("t", "gone", [{ name: "a" }]),
      ],
      claims: [claim("x", [result("n", "b"), result("n", "a", { adminAccess: true })])],
      rules: [
        {
          metadata: meta("rule"),
          spec: {
            deviceSelector: { pool: "n", device: "e" },
            taint: { key: "k", effect: "NoExecute" },
          },
        },
      ],
    }),
  );
  assert.deepEqual(states(model), {
    "d/n/a": "free",
    "d/n/b": "held",
    "d/n/c": "tainted",
    "d/n/e": "tainted",
    "d/gone/a": "unhealthy",
  });
  assert.deepEqual(model.counts, { free: 1, held: 1, blocked: 0, tainted: 2, unhealthy: 1 });
  assert.equal(model.byClass.get("c"), 1);
  assert.equal(model.byNamespace.get("ns"), 1);
});

test("partitions are blocked where others have used up what they need", () => {
  const part = (name, memory) => ({
    name,
    consumesCounters: [{ counterSet: "hardware", counters: { memory: { value: memory } } }],
  });
  const counters = slice("counters", "n", []);
  counters.spec.sharedCounters = [{ name: "hardware", counters: { memory: { value: "4Gi" } } }];
  const parts = slice("parts", "n", [
    part("whole", "4Gi"),
    part("half-0", "2Gi"),
    part("half-1", "2048Mi"),
    part("most", "3e9"),
    part("other", "1"),
  ]);
  assert.equal(makeModel(cluster({ slices: [counters, parts] })).whole, 1);
  const held = (...names) =>
    states(
      makeModel(
        cluster({
          slices: [counters, parts],
          claims: [
            claim(
              "x",
              names.map((name) => result("n", name)),
            ),
          ],
        }),
      ),
    );
  const free = { "d/n/whole": "free", "d/n/half-0": "free", "d/n/half-1": "free" };
  assert.deepEqual(held(), { ...free, "d/n/most": "free", "d/n/other": "free" });
  assert.deepEqual(held("half-0"), {
    "d/n/whole": "blocked",
    "d/n/half-0": "held",
    "d/n/half-1": "free",
    "d/n/most": "blocked",
    "d/n/other": "free",
  });
  assert.deepEqual(Object.values(held("whole")).sort(), [
    "blocked",
    "blocked",
    "blocked",
    "blocked",
    "held",
  ]);
});

test("a device that a claim has and no slice is gone", () => {
  const bound = claim("bound", [result("p", "b")]);
  bound.status.allocation.nodeSelector = {
    nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", values: ["n"] }] }],
  };
  const made = cluster({
    nodes: [node("n")],
    slices: [slice("s", "n", [{ name: "a" }])],
    claims: [claim("x", [result("n", "a"), result("n", "c"), result("q", "d")]), bound],
  });
  assert.deepEqual(states(makeModel(made)), { "d/n/a": "held" }, "slices are not known");
  made.loaded.add("resourceslices");
  const model = makeModel(made);
  assert.deepEqual(
    model.devices.map((one) => [one.id, one.place, one.state, one.gone]),
    [
      ["d/n/a", "n", "held", false],
      ["d/n/c", "n", "unhealthy", true],
      ["d/q/d", "d/q", "unhealthy", true],
      ["d/p/b", "n", "unhealthy", true],
    ],
  );
});

test("slices of an older generation do not count", () => {
  const model = makeModel(
    cluster({
      nodes: [node("n")],
      slices: [slice("old", "n", [{ name: "a" }]), slice("new", "n", [{ name: "b" }], 2)],
    }),
  );
  assert.deepEqual(Object.keys(states(model)), ["d/n/b"]);
});

test("devices of v1beta1 and instances of v1alpha2 are devices", () => {
  const model = makeModel(
    cluster({
      slices: [
        slice("beta", "n", [
          { name: "a", basic: { taints: [{ key: "k", effect: "NoSchedule" }] } },
        ]),
        {
          metadata: meta("alpha"),
          nodeName: "m",
          driverName: "cats",
          namedResources: { instances: [{ name: "tom" }] },
        },
      ],
    }),
  );
  assert.deepEqual(states(model), { "d/n/a": "tainted", "cats/m/tom": "free" });
});

const telling = (usage, made) => {
  const text = typeof usage === "string" ? usage : JSON.stringify(usage);
  made.metadata.annotations = { "devices.dibs.dev/usage": text };
  return made;
};

test("how busy a device is, any slice of its pool's newest generation may tell", () => {
  const memory = { memoryUsed: 12884901888, memory: 150754820096 };
  const model = makeModel(
    cluster({
      slices: [
        telling({ c: { percent: 1 } }, slice("old", "n", [{ name: "c" }])),
        slice("one", "n", [{ name: "a" }], 2),
        telling(
          { a: { ...memory, percent: 37 }, b: memory, gone: memory },
          slice("two", "n", [{ name: "b" }, { name: "c" }], 2),
        ),
        slice("other", "m", [{ name: "a" }]),
      ],
    }),
  );
  const told = { used: 12884901888, all: 150754820096 };
  assert.deepEqual(Object.fromEntries(model.devices.map((one) => [one.id, one.usage])), {
    "d/n/a": { memory: told, percent: 37 },
    "d/n/b": { memory: told, percent: undefined },
    "d/n/c": undefined,
    "d/m/a": undefined,
  });
  assert.deepEqual([told.used, told.all, 1, 1610612736, 1048575].map(bytesText), [
    "12Gi",
    "140Gi",
    "1",
    "1.5Gi",
    "1Mi",
  ]);
});

test("what is told of usage may be anything", () => {
  const kRubbish = [
    "",
    "nonsense",
    "null",
    "7",
    [{ percent: 3 }],
    { a: null, 0: { percent: 3 } },
    { a: { percent: "37" } },
    { a: { percent: 101 } },
    { a: { percent: -1 } },
    { a: { memory: 4 } },
    { a: { memoryUsed: 4 } },
    { a: { memoryUsed: 0, memory: 0 } },
    { a: { memoryUsed: -4, memory: 4 } },
    { a: { memoryUsed: 5, memory: 4 } },
    { a: { memoryUsed: 5, memory: 2 ** 53 } },
  ];
  for (const usage of kRubbish) {
    const slices = [telling(usage, slice("s", "n", [{ name: "a" }]))];
    const { devices } = makeModel(cluster({ slices }));
    assert.equal(devices[0].usage, undefined, JSON.stringify(usage));
  }
});

test("what a pod says of a device's health counts", () => {
  const pod = {
    metadata: meta("p", { namespace: "ns" }),
    spec: { nodeName: "n", resourceClaims: [{ name: "gpu", resourceClaimName: "x" }] },
    status: {
      containerStatuses: [
        {
          name: "m",
          allocatedResourcesStatus: [
            {
              name: "claim:gpu",
              resources: [{ resourceID: "d/gpu=b", health: "Unhealthy", message: "hot" }],
            },
          ],
        },
      ],
    },
  };
  const model = makeModel(
    cluster({
      slices: [slice("s", "n", [{ name: "a" }, { name: "b" }])],
      claims: [claim("x", [result("n", "a"), result("n", "b")])],
      pods: [pod],
    }),
  );
  assert.deepEqual(states(model), { "d/n/a": "held", "d/n/b": "unhealthy" });
  assert.equal(model.devices.find((one) => one.name === "b").illness, "hot");
});

test("an id that names no device of a claim speaks of the only one", () => {
  const statesOf = (devices, resourceID) => {
    const pod = {
      metadata: meta("p", { namespace: "ns" }),
      spec: { nodeName: "n", resourceClaims: [{ name: "gpu", resourceClaimName: "x" }] },
      status: {
        containerStatuses: [
          {
            name: "m",
            allocatedResourcesStatus: [
              { name: "claim:gpu", resources: [{ resourceID, health: "Unhealthy" }] },
            ],
          },
        ],
      },
    };
    const model = makeModel(
      cluster({
        slices: [slice("s", "n", [{ name: "a" }, { name: "ba" }])],
        claims: [claim("x", devices.map((name) => result("n", name)))],
        pods: [pod],
      }),
    );
    return states(model);
  };
  assert.deepEqual(statesOf(["a", "ba"], "d/gpu=common"), { "d/n/a": "held", "d/n/ba": "held" });
  assert.deepEqual(statesOf(["a"], "d/gpu=common"), { "d/n/a": "unhealthy", "d/n/ba": "free" });
  assert.deepEqual(statesOf(["a", "ba"], "d/gpu=u-ba"), { "d/n/a": "held", "d/n/ba": "unhealthy" });
});

test("stages have the server's times, and those the page has seen", () => {
  const old = makeModel(cluster({ claims: [claim("x", [result("n", "a")])] })).journeys[0];
  assert.deepEqual(
    old.steps.map((one) => one.reached),
    [true, true, false, false, false],
  );
  assert.equal(old.steps[1].took, 2000);
  assert.equal(old.steps[1].exact, false);

  const live = emptyCluster();
  put(live, "resourceclaims", { metadata: meta("y", { namespace: "ns" }) });
  put(live, "resourceclaims", { ...claim("y", [result("n", "a")]) });
  const seen = makeModel(live).journeys[0];
  assert.equal(seen.steps[1].exact, true);
  assert.ok(seen.steps[1].took < 1000);
});

test("what waits says why, once", () => {
  const pod = {
    metadata: meta("p", { namespace: "ns" }),
    spec: {},
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", message: "0/1 nodes are available" }],
    },
  };
  const event = (name, message) => ({
    metadata: meta(name, { namespace: "ns" }),
    reason: "FailedScheduling",
    message,
    involvedObject: { uid: "u-p" },
  });
  const used = { ...pod, spec: { resourceClaims: [{ name: "r", resourceClaimName: "c" }] } };
  const { metadata, spec } = claim("c", []);
  const both = makeModel(cluster({ pods: [used], claims: [{ metadata, spec }] }));
  assert.deepEqual(
    both.waiting.map((one) => [one.key, one.reason]),
    [
      ["claim/ns/c", "pod p: 0/1 nodes are available"],
      ["pod/ns/p", "0/1 nodes are available"],
    ],
  );
  const model = makeModel(
    cluster({
      pods: [pod],
      events: [event("e", "0/1 nodes are available"), event("f", "another")],
    }),
  );
  assert.equal(model.waiting.length, 1);
  assert.equal(model.waiting[0].reason, "0/1 nodes are available");
  assert.deepEqual(model.waiting[0].messages, ["FailedScheduling: another"]);
});

test("what the scheduler explains is the reason, the newest of it", () => {
  const pod = {
    metadata: meta("p", { namespace: "ns" }),
    spec: { resourceClaims: [{ name: "r", resourceClaimName: "c" }] },
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", message: "0/1 nodes are available" }],
    },
  };
  const event = (name, message, lastTimestamp) => ({
    metadata: meta(name, { namespace: "ns" }),
    reason: "Explained",
    message,
    lastTimestamp,
    involvedObject: { uid: "u-p" },
  });
  const { metadata, spec } = claim("c", []);
  const model = makeModel(
    cluster({
      pods: [pod],
      claims: [{ metadata, spec }],
      explained: [
        event("new", "wants 9 of 8 devices", "2026-01-01T00:00:09Z"),
        event("old", "wants 9 of 4 devices", "2026-01-01T00:00:05Z"),
      ],
    }),
  );
  assert.deepEqual(
    model.waiting.map((one) => one.reason),
    ["pod p: wants 9 of 8 devices", "wants 9 of 8 devices"],
  );
});

test("every word of the page is shown", () => {
  const texts = readdirSync("src").map((name) => readFileSync(`src/${name}`, "utf8"));
  const sources = texts.join("\n");
  const table = /const english = \{(.*?)\n\};/s.exec(sources)[1];
  const unused = [...table.matchAll(/^ {2}(\w+):/gm)]
    .map(([, word]) => word)
    // By its whole name, or by its beginning, as `stage_${stage}`.
    .filter((word) => !sources.includes(`"${word}"`))
    .filter((word) => !sources.includes(`\`${word.split("_")[0]}_$`));
  assert.deepEqual(unused, []);
});

test("pods that run or have ended do not wait", () => {
  const pod = (name, status) => ({
    metadata: meta(name, { namespace: "ns" }),
    spec: { nodeName: "n" },
    status,
  });
  const running = {
    phase: "Running",
    containerStatuses: [{ state: { running: { startedAt: "2026-01-01T00:00:01Z" } } }],
  };
  assert.equal(
    makeModel(cluster({ pods: [pod("a", running), pod("b", { phase: "Failed" })] })).waiting.length,
    0,
  );
});

test("what cannot go and what is not ready waits, too", () => {
  const running = {
    spec: { nodeName: "n" },
    status: {
      phase: "Running",
      containerStatuses: [{ name: "m", state: { running: { startedAt: "2026-01-01T00:00:01Z" } } }],
      conditions: [
        {
          type: "Ready",
          status: "False",
          message: "containers with unready status: [m]",
          lastTransitionTime: "2026-01-01T00:00:05Z",
        },
      ],
    },
  };
  const deletionTimestamp = "2026-01-01T00:01:00Z";
  const model = makeModel(
    cluster({
      pods: [
        { ...running, metadata: meta("unready", { namespace: "ns" }) },
        { ...running, metadata: meta("going", { namespace: "ns", deletionTimestamp }) },
      ],
      claims: [
        claim("kept", [result("n", "a")]),
        {
          ...claim("going", [result("n", "b")]),
          metadata: meta("c", {
            namespace: "ns",
            deletionTimestamp,
            finalizers: ["example.com/f"],
          }),
        },
      ],
      events: [
        {
          metadata: meta("e", { namespace: "ns" }),
          involvedObject: { uid: "u-going" },
          reason: "FailedUnprepareDynamicResources",
          message: "no driver",
        },
      ],
    }),
  );
  const due = Date.parse(deletionTimestamp);
  assert.deepEqual(
    model.waiting.map((one) => [one.key, one.stage, one.due, one.reason, one.messages]),
    [
      ["pod/ns/unready", "running", undefined, "containers with unready status: [m]", []],
      ["claim/ns/c", "going", due, "example.com/f", []],
      ["pod/ns/going", "going", due, "", ["FailedUnprepareDynamicResources: no driver"]],
    ],
  );
  assert.equal(model.waiting[1].lists, "finalizers");
});

test("a result is of the class of its request or of the alternative taken", () => {
  const made = {
    spec: {
      devices: {
        requests: [
          { name: "r", firstAvailable: [{ name: "big", deviceClassName: "b" }] },
          { name: "q", deviceClassName: "beta" },
        ],
      },
    },
  };
  assert.equal(classOf(made, { request: "r/big" }), "b");
  assert.equal(classOf(made, { request: "q" }), "beta");
  assert.equal(classOf(made, { request: "nothing" }), "-");
});

test("rules by expression are not guessed at", () => {
  assert.equal(isOpaque({ spec: { deviceSelector: { selectors: [{}] } } }), true);
  assert.equal(isOpaque({ spec: { deviceSelector: { driver: "d" } } }), false);
});

const kStart = Date.parse("2026-01-01T00:00:00Z");
const kMinute = 60000;
const iso = (at) => new Date(at).toISOString();
/** What the server says of minutes in which each class held so many devices. */
const usage = (from, to, held) => ({
  from: iso(from),
  to: iso(to),
  items: Object.entries(held).flatMap(([name, count]) => {
    const rows = [];
    for (let at = from; at < to; at += kMinute) {
      const seconds = Math.min(kMinute, to - at) / 1000;
      rows.push({ from: iso(at), namespace: "ns", class: name, deviceSeconds: count * seconds });
    }
    return rows;
  }),
});
const brief = (series) => series.map((one) => [one.name, one.now, one.most]);

test("usage asks for an hour, then for what is new", () => {
  const history = new UsageHistory();
  const from = () => new URLSearchParams(history.question(kStart + 3600000 + 30000)).get("from");
  assert.equal(from(), iso(kStart));
  history.merge(usage(kStart, kStart + 3630000, { a: 2 }));
  assert.equal(from(), iso(kStart + 3600000));
});

test("usage has means of minutes, those that held most, and the rest together", () => {
  const history = new UsageHistory();
  history.merge(usage(kStart, kStart + 90000, { a: 3, b: 2, c: 1 }));
  assert.deepEqual(history.times(), [kStart / 1000 + 30, kStart / 1000 + 75]);
  assert.equal(history.seconds(), 90);
  const now = new Map([
    ["a", 4],
    ["d", 5],
  ]);
  const series = history.series("byClass", 1, "rest", now);
  assert.deepEqual(brief(series), [
    ["a", 4, 3],
    ["rest", 5, 3],
  ]);
  assert.equal(series[0].deviceSeconds, 270);
  assert.deepEqual(brief(history.series("byNamespace", 5, "rest", new Map())), [["ns", 0, 6]]);
});

test("usage goes on with the minute that had not ended, and forgets what is old", () => {
  const history = new UsageHistory();
  history.merge(usage(kStart, kStart + 90000, { a: 1 }));
  history.merge(usage(kStart + kMinute, kStart + 3 * kMinute, { a: 2 }));
  assert.deepEqual(history.series("byClass", 5, "", new Map())[0].values, [1, 2, 2]);
  history.merge(usage(kStart + 2 * kMinute, kStart + 70 * kMinute, { a: 2 }));
  assert.equal(history.times().length, 61);
});
