// How a collection is followed over connections that break.

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSync } from "esbuild";

const bundled = buildSync({
  entryPoints: ["src/watch.ts"],
  bundle: true,
  write: false,
  format: "esm",
});
const text = Buffer.from(bundled.outputFiles[0].contents).toString("base64");
const { watchAll } = await import(`data:text/javascript;base64,${text}`);

const encoder = new TextEncoder();
const thing = (name, version) => ({ metadata: { name, uid: name, resourceVersion: version } });
const line = (type, object) => encoder.encode(`${JSON.stringify({ type, object })}\n`);

const answer = (status, body) => new Response(JSON.stringify(body), { status });

/** A server whose watches are told by the test; `asked` has what it was asked for. */
function serve() {
  const asked = [];
  const watches = [];
  let refuses;
  globalThis.fetch = async (path, { signal }) => {
    asked.push(path);
    if (refuses) return refuses();
    if (!path.includes("watch=1"))
      return answer(200, { metadata: { resourceVersion: "5" }, items: [thing("a", "5")] });
    const stream = new ReadableStream({
      start(control) {
        watches.push(control);
        signal.addEventListener("abort", () => control.error(new Error("aborted")));
      },
    });
    return new Response(stream);
  };
  return {
    asked,
    watches,
    refuse: (how) => (refuses = how),
    versions: () =>
      asked
        .filter((path) => path.includes("watch=1"))
        .map((path) => new URLSearchParams(path.split("?")[1]).get("resourceVersion")),
  };
}

function follower() {
  const told = [];
  return {
    told,
    reset: (things) => told.push(`reset ${things.map((one) => one.metadata.name)}`),
    changed: (one) => told.push(`changed ${one.metadata.name}`),
    removed: (one) => told.push(`removed ${one.metadata.name}`),
    problem: (one) => told.push(one ? `problem ${one.status} ${one.message}` : "well"),
  };
}

async function until(holds) {
  for (let times = 0; !holds(); ++times) {
    assert.ok(times < 2000, "it does not come");
    await new Promise((next) => setImmediate(next));
  }
}

/** Virtual time, of Date and setTimeout. Returns what lets it pass. */
function clockOf(context) {
  const real = { setTimeout, clearTimeout, now: Date.now };
  const timers = new Map();
  let now = 0;
  let last = 0;
  globalThis.setTimeout = (run, delay) => {
    timers.set(++last, { at: now + delay, run });
    return last;
  };
  globalThis.clearTimeout = (id) => timers.delete(id);
  Date.now = () => now;
  context.after(() => {
    globalThis.setTimeout = real.setTimeout;
    globalThis.clearTimeout = real.clearTimeout;
    Date.now = real.now;
  });
  return (milliseconds) => {
    now += milliseconds;
    for (const [id, { at, run }] of [...timers]) {
      if (at > now) continue;
      timers.delete(id);
      run();
    }
  };
}

test("a stream that breaks is gone on with at once, from where it was, and is no news", async (context) => {
  const pass = clockOf(context);
  const server = serve();
  const to = follower();
  const stop = watchAll("/things", to);
  for (let turn = 1; turn <= 8; ++turn) {
    await until(() => server.watches.length === turn);
    server.watches[turn - 1].enqueue(line("MODIFIED", thing("a", String(5 + turn))));
    await until(() => to.told.filter((one) => one === "changed a").length === turn);
    pass(60000);
    server.watches[turn - 1].error(new TypeError("network error"));
  }
  await until(() => server.watches.length === 9);
  stop();
  assert.deepEqual(server.versions(), ["5", "6", "7", "8", "9", "10", "11", "12", "13"]);
  assert.deepEqual([...new Set(to.told)], ["reset a", "well", "changed a"]);
});

test("a server that is gone is told of, and asked less and less often", async (context) => {
  const pass = clockOf(context);
  const server = serve();
  const to = follower();
  const stop = watchAll("/things", to);
  await until(() => server.watches.length === 1);
  pass(60000);
  server.refuse(() => {
    throw new TypeError("Failed to fetch");
  });
  server.watches[0].error(new TypeError("network error"));
  const lost = "problem 0 TypeError: Failed to fetch";
  let seen = 1;
  for (const wait of [500, 1000, 2000, 4000, 8000, 15000, 15000]) {
    await until(() => to.told.filter((one) => one === lost).length === seen);
    const before = server.asked.length;
    pass(wait - 1);
    await new Promise((next) => setImmediate(next));
    assert.equal(server.asked.length, before, `asked again within ${wait} ms`);
    if (wait === 15000) server.refuse(undefined);
    pass(1);
    ++seen;
    if (wait === 15000) break;
  }
  await until(() => server.watches.length === 2);
  await until(() => to.told.at(-1) === "well");
  stop();
});

test("a server that does not answer is told of, however long that takes", async (context) => {
  const pass = clockOf(context);
  const server = serve();
  const to = follower();
  let fail;
  server.refuse(() => new Promise((_, failed) => (fail = failed)));
  const stop = watchAll("/things", to);
  await until(() => fail);
  pass(60000);
  fail(new TypeError("timed out"));
  await until(() => to.told.includes("problem 0 TypeError: timed out"));
  stop();
});

test("what is too old is listed again", async (context) => {
  const pass = clockOf(context);
  const server = serve();
  const to = follower();
  const stop = watchAll("/things?x=1", to);
  await until(() => server.watches.length === 1);
  server.watches[0].enqueue(line("DELETED", thing("a", "7")));
  server.watches[0].enqueue(line("ERROR", { kind: "Status", code: 410 }));
  await until(() => to.told.includes("removed a"));
  for (let turns = 0; turns < 20; ++turns) await new Promise((next) => setImmediate(next));
  pass(500);
  await until(() => server.watches.length === 2);
  stop();
  assert.deepEqual(to.told, ["reset a", "well", "removed a", "reset a", "well"]);
  assert.deepEqual(server.asked[0], "/things?x=1&limit=500");
});

test("who is refused is not asked for again", async (context) => {
  const pass = clockOf(context);
  const server = serve();
  const to = follower();
  server.refuse(() => answer(401, { message: "Unauthorized" }));
  watchAll("/things", to);
  await until(() => to.told.length === 1);
  pass(60000);
  for (let turns = 0; turns < 20; ++turns) await new Promise((next) => setImmediate(next));
  assert.deepEqual(to.told, ["problem 401 Unauthorized"]);
  assert.equal(server.asked.length, 1);
});
