// What a user does with the page, in Chromium. Run by run.py browser, which says in the environment where everything is.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { claim, kDevices, kNodes, lists } from "./large.mjs";

const { URL: url, TOKEN: token, LINK: link, CHROMIUM: executablePath, SHOTS: shots } = process.env;
// Milliseconds that 19 frames of 20 may take while a thousand nodes are scrolled and change.
const kFrame = Number(process.env.FRAME);
const kPatience = 90000;
const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);

async function send(method, path, body, as = token) {
  const answer = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${as}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json().catch(() => undefined) };
}

async function make(path, body) {
  const answer = await send("POST", path, body);
  assert.equal(answer.status, 201, `${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const kResource = "resource.k8s.io/v1";
const kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const kPods = "/api/v1/namespaces/default/pods";
const kSlices = "/apis/resource.k8s.io/v1/resourceslices";

const claimOf = (name, count) => ({
  apiVersion: kResource,
  kind: "ResourceClaim",
  metadata: { name },
  spec: {
    devices: {
      requests: [{ name: "gpu", exactly: { deviceClassName: "gpu.example.com", count } }],
    },
  },
});

const podOf = (name, claimName) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: {
    containers: [{ name: "main", image: "busybox", resources: { claims: [{ name: "gpu" }] } }],
    resourceClaims: [{ name: "gpu", resourceClaimName: claimName }],
  },
});

let browser;
try {
  browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
} catch (error) {
  console.error(`Chromium does not start: ${error.message}`);
  process.exit(77);
}

/// What `dibs open` prints.
async function newLink() {
  const { code } = await make("/dibs/codes");
  return `${url}/dibs/#code=${code}`;
}

/// What `dibs why` prints.
function why(subject) {
  const done = spawnSync(process.env.DIBS, ["why", subject, "-n", "default"], { encoding: "utf8" });
  assert.equal(done.status, 2, done.stdout + done.stderr);
  return done.stdout;
}

const complaints = [];
async function open(options = {}) {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    locale: "en-GB",
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${url}/`) && !/^(data|blob):/.test(asked))
      complaints.push(`asks for ${asked}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  // Answers other than 200 are told there, too, and some of them are wanted here.
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      complaints.push(message.text());
    }
  });
  return page;
}

async function check(page, name) {
  await page.screenshot({ path: `${shots}/${name}.png` });
  await page.evaluate(axeSource);
  // What axe itself does to look is not the page's doing.
  const before = complaints.length;
  const found = await page.evaluate(() => globalThis.axe.run(document, { preload: false }));
  complaints.length = before;
  const text = found.violations.map(
    (one) => `${one.id}: ${one.help}\n${one.nodes.map((node) => node.html).join("\n")}`,
  );
  assert.deepEqual(text, [], `axe finds in ${name}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} pixels wider than the window`);
}

async function until(what, holds) {
  const ended = Date.now() + kPatience;
  while (!(await holds())) {
    assert.ok(Date.now() < ended, `${what} does not come`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

const go = (page, view) => page.click(`nav a[href="#${view}"]`);
const has = (page, selector, text) => page.locator(selector, { hasText: text }).first().waitFor();
const count = (page, state, wanted) =>
  page.locator(`[data-count="${state}"]`, { hasText: new RegExp(`^${wanted}$`) }).waitFor();

const steps = {
  async "a link lets in once"() {
    const page = (this.page = await open());
    await page.goto(link);
    await count(page, "free", 24);
    assert.equal(new URL(page.url()).hash, "", "the code stays in the address");
    await check(page, "devices");
    await page.reload();
    await count(page, "free", 24);

    const other = await open();
    await other.goto(link);
    await has(other, "[role=alert]", "dibs open");
    await check(other, "used-link");
    await other.context().close();
  },

  async "a wrong token is refused, a right one taken"() {
    const page = await open();
    await page.goto(`${url}/dibs/`);
    await page.click("button[type=submit]");
    await has(page, "[role=alert]", "A token is wanted");
    // No header can have such letters.
    await page.fill("input[type=password]", "令牌");
    await page.press("input[type=password]", "Enter");
    await has(page, "[role=alert]", "does not accept this token");
    await page.fill("input[type=password]", "wrong");
    await page.press("input[type=password]", "Enter");
    await has(page, "[role=alert]", "does not accept this token");
    await page.fill("input[type=password]", token);
    await page.press("input[type=password]", "Enter");
    await count(page, "free", 24);
    await page.context().close();
  },

  async "a link that is followed in an open tab is used, too"() {
    const page = await open();
    await page.goto(`${url}/dibs/`);
    await has(page, "button", "Sign in");
    await page.goto(await newLink());
    await count(page, "free", 24);
    assert.equal(new URL(page.url()).hash, "", "the code stays in the address");
    const session = await page.evaluate(() => sessionStorage.getItem("dibs.token"));
    await page.goto(await newLink());
    await until("the end of the session before", async () => {
      return (await send("GET", "/api/v1/nodes", undefined, session)).status === 401;
    });
    await count(page, "free", 24);
    await page.goto(`${url}/dibs/#code=nonsense.`);
    await has(page, "[role=alert]", "dibs open");
    assert.equal(new URL(page.url()).hash, "", "what is no code stays in the address");
    await page.context().close();
  },

  async "a server that cannot be reached is told of, and found again"() {
    const page = await open();
    await page.route(/watch=1/, (route) => route.abort());
    await page.goto(await newLink());
    await has(page, ".error", "cannot be reached");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.locator(".error").waitFor({ state: "detached" });
    await count(page, "free", 24);
    await page.context().close();
  },

  async "another language and other colours leave everything where it is"() {
    const { page } = this;
    await page.fill("input[type=search]", "node-1");
    await page.focus(".map");
    await page.keyboard.press("Home");
    await has(page, ".detail h2", "gpu-");
    await page.locator(".tools button", { hasText: "中文" }).focus();
    await page.keyboard.press("Enter");
    await has(page, "nav a[aria-current=page]", "设备");
    await has(page, ".detail h2", "gpu-");
    assert.equal(await page.inputValue("input[type=search]"), "node-1");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "English");
    for (const theme of ["浅色", "深色"]) {
      await page.locator(".tools button", { hasText: "主题" }).click();
      await has(page, ".tools button", theme);
      await check(page, `theme-${theme === "深色" ? "dark" : "light"}`);
    }
    await page.locator(".tools button", { hasText: "主题" }).click();
    await page.locator(".tools button", { hasText: "English" }).click();
    await page.fill("input[type=search]", "");
  },

  async "a claim that is allocated is seen at once, and who has it"() {
    const { page } = this;
    await make(kClaims, claimOf("one", 1));
    await make(kPods, podOf("user", "one"));
    await count(page, "held", 1);
    await page.fill("input[type=search]", "default/one");
    await page.focus(".map");
    await page.keyboard.press("End");
    await has(page, ".detail", "default/one");
    await has(page, ".detail", "user");
    await check(page, "device");
    await page.fill("input[type=search]", "");
    for (const key of ["Home", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) {
      await page.keyboard.press(key);
    }
    await has(page, ".detail h2", "gpu-");
  },

  async "how busy a device is comes and goes as its driver tells"() {
    const { page } = this;
    const found = await send("GET", kSlices);
    const name = found.body.items.find((one) => one.spec.pool.name === "node-0").metadata.name;
    const tell = async (usage) => {
      const { body } = await send("GET", `${kSlices}/${name}`);
      body.metadata.annotations = { ...body.metadata.annotations, "devices.dibs.dev/usage": usage };
      assert.equal((await send("PUT", `${kSlices}/${name}`, body)).status, 200);
    };
    await page.fill("input[type=search]", "node-0/gpu-1");
    await page.focus(".map");
    await page.keyboard.press("End");
    await has(page, ".detail h2", "gpu-1");
    await tell('{"gpu-1": {"memoryUsed": 12884901888, "memory": 150754820096, "percent": 37}}');
    await has(page, ".detail dd", "12Gi/140Gi");
    await has(page, ".detail dd", "37 %");
    await check(page, "device-usage");
    await tell("nonsense");
    await page.locator(".detail meter").first().waitFor({ state: "detached" });
    await page.fill("input[type=search]", "");
  },

  async "claims and pods show their stages with times"() {
    const { page } = this;
    await go(page, "journeys");
    await page.selectOption("select", "pod");
    await page.locator("[role=option]", { hasText: "user" }).click();
    await page.locator(".stages li.reached").nth(4).waitFor();
    await has(page, ".stages", "after");
    await check(page, "journeys");
    await page.selectOption("select", "claim");
    await page.focus("[role=listbox]");
    await page.keyboard.press("Home");
    await has(page, ".detail h2", "default/one");
  },

  async "what waits says why, and markup in it stays text"() {
    const { page } = this;
    await go(page, "queue");
    await make(kClaims, claimOf("many", 9));
    const pod = await make(kPods, podOf("greedy", "many"));
    const [reason] = /wants 9 of 8 devices?/.exec(why("pod/greedy")) ?? [];
    assert.ok(reason, why("pod/greedy"));
    await has(page, ".queue li:has(h2:text('pod default/greedy')) .reason", reason);
    await has(page, ".queue li:has(h2:text('claim default/many')) .reason", reason);
    const trick = '<img src="x" onerror="document.title=1">';
    await make("/api/v1/namespaces/default/events", {
      metadata: { name: "trick" },
      type: "Warning",
      reason: "Trick",
      message: trick,
      involvedObject: { kind: "Pod", namespace: "default", name: "greedy", uid: pod.metadata.uid },
    });
    await has(page, ".queue", trick);
    assert.equal(await page.locator("img").count(), 0);
    await has(page, ".queue code", "dibs why pod/greedy -n default");
    await check(page, "queue");
  },

  async "taints are shown, on the map as well"() {
    const { page } = this;
    await go(page, "health");
    await make("/apis/resource.k8s.io/v1/devicetaintrules", {
      apiVersion: kResource,
      kind: "DeviceTaintRule",
      metadata: { name: "ill" },
      spec: {
        deviceSelector: { driver: "gpu.example.com", pool: "node-2" },
        taint: { key: "example.com/ill", value: "yes", effect: "NoSchedule" },
      },
    });
    await has(page, "td", "example.com/ill=yes:NoSchedule");
    await check(page, "health");
    await go(page, "devices");
    await count(page, "tainted", 8);
  },

  async "usage has classes and namespaces, of the time before the page was opened as well"() {
    const past = (path) => path.replace("/default/", "/past/");
    await make("/api/v1/namespaces", { metadata: { name: "past" } });
    await until("the account", async () => {
      const account = past("/api/v1/namespaces/default/serviceaccounts/default");
      return (await send("GET", account)).status === 200;
    });
    await make(past(kClaims), claimOf("short", 2));
    await make(past(kPods), podOf("short", "short"));
    await until("the record", async () => {
      return (await send("GET", "/dibs/usage?namespace=past")).body.items.length > 0;
    });
    await send("DELETE", past(`${kPods}/short?gracePeriodSeconds=0`));
    await send("DELETE", past(`${kClaims}/short`));
    await until("the end", async () => {
      return (await send("GET", past(`${kClaims}/short`))).status === 404;
    });

    const page = await open();
    await page.goto(`${url}/dibs/#usage`);
    await page.fill("input[type=password]", token);
    await page.press("input[type=password]", "Enter");
    await has(page, "td", "past");
    await has(page, "td", "default");
    await has(page, "td", "gpu.example.com");
    await page.locator(".chart canvas").first().waitFor();
    await check(page, "usage");
    await page.selectOption("select >> nth=1", "namespace,class,pod");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.click("button[type=submit]"),
    ]);
    assert.equal(file.suggestedFilename(), "dibs-usage-1h.csv");
    const text = readFileSync(await file.path(), "utf8");
    assert.match(text, /^from,to,namespace,class,pod,device_seconds,used_device_seconds\n/);
    assert.match(text, /,past,gpu\.example\.com,short,[0-9.]+,[0-9.]+\n/);
    await page.context().close();
  },

  async "who may see one namespace sees that, and what is missing"() {
    await make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
      metadata: { name: "viewer" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
      subjects: [{ kind: "ServiceAccount", name: "viewer", namespace: "default" }],
    });
    await make("/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "viewer" } });
    const asked = await make("/api/v1/namespaces/default/serviceaccounts/viewer/token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    const page = await open();
    await page.goto(`${url}/dibs/#journeys`);
    await page.fill("input[type=password]", asked.status.token);
    await page.press("input[type=password]", "Enter");
    await has(page, ".notice", "cannot list resource");
    await check(page, "forbidden");
    await page.fill(".notice input", "default");
    await page.locator(".notice button").click();
    await has(page, "[role=option]", "user");
    await has(page, ".notice", "devices that others hold look free");
    await page.context().close();
  },

  async "it speaks Chinese, is dark, and fits a phone"() {
    const session = await this.page.evaluate(() => sessionStorage.getItem("dibs.token"));
    const gated = podOf("gated", "one");
    gated.spec.schedulingGates = [{ name: "example.com/gate" }];
    await make(kPods, gated);
    const page = await open({
      locale: "zh-CN",
      colorScheme: "dark",
      viewport: { width: 360, height: 640 },
    });
    await page.goto(`${url}/dibs/`);
    await has(page, "button", "登录");
    await page.fill("input[type=password]", session);
    await page.press("input[type=password]", "Enter");
    for (const view of ["devices", "journeys", "queue", "health", "usage"]) {
      await go(page, view);
      await page.locator(`nav a[href="#${view}"][aria-current=page]`).waitFor();
      if (view === "usage") await has(page, "td", "gpu.example.com");
      if (view === "queue") await has(page, ".queue .reason", "调度门控: example.com/gate");
      await check(page, `phone-${view}`);
    }
    assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
    await page.context().close();
  },

  async "a thousand nodes are smooth"() {
    const page = await open();
    const feeds = [];
    await page.route(/\/api(s)?\//, async (route) => {
      const asked = new URL(route.request().url());
      const kind = asked.pathname.split("/").pop();
      if (!lists[kind]) return route.continue();
      if (asked.searchParams.has("watch")) {
        // A route cannot stream: each answer is one change, and the page comes back for the next.
        if (kind !== "resourceclaims") return feeds.push(route);
        this.changes = (this.changes ?? 0) + 1;
        const index = this.changes % kNodes;
        const object = claim(index, 4);
        object.metadata.resourceVersion = String(1 + this.changes);
        return route.fulfill({ body: `${JSON.stringify({ type: "ADDED", object })}\n` });
      }
      return route.fulfill({ json: { metadata: { resourceVersion: "1" }, items: lists[kind] } });
    });
    await page.goto(`${url}/dibs/`);
    await page.fill("input[type=password]", token);
    const begun = Date.now();
    await page.press("input[type=password]", "Enter");
    await has(page, ".legend", `${kNodes} nodes · ${kNodes * kDevices} devices`);
    console.log(`  ${kNodes} nodes drawn after ${Date.now() - begun} ms`);
    const frames = await page.evaluate(async () => {
      const map = document.querySelector(".map");
      const gaps = [];
      let before = await new Promise(requestAnimationFrame);
      const step = map.scrollHeight / 120;
      for (let at = 0; at < 120; ++at) {
        map.scrollTop = at * step;
        const now = await new Promise(requestAnimationFrame);
        gaps.push(now - before);
        before = now;
      }
      return gaps.sort((a, b) => a - b);
    });
    const at = (share) => Math.round(frames[Math.floor(share * (frames.length - 1))]);
    console.log(
      `  frames while scrolling: median ${at(0.5)} ms, 95 % within ${at(0.95)} ms, longest ${at(1)} ms`,
    );
    assert.ok(at(0.95) < kFrame, `one frame of 20 takes ${at(0.95)} ms and more`);
    await check(page, "large");
    await page.focus(".map");
    await page.keyboard.press("End");
    await has(page, ".detail", "node-999");
    await go(page, "journeys");
    await page.locator("[role=option]").first().waitFor();
    assert.ok(
      (await page.locator("[role=option]").count()) < 100,
      "rows out of sight are in the document",
    );
    for (const route of feeds) await route.abort().catch(() => {});
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
  },

  async "signing out ends the session"() {
    const { page } = this;
    const session = await page.evaluate(() => sessionStorage.getItem("dibs.token"));
    assert.equal((await send("GET", "/api/v1/nodes", undefined, session)).status, 200);
    await page.locator(".tools button", { hasText: "Sign out" }).click();
    await has(page, "button", "Sign in");
    await until("the end of the token", async () => {
      return (await send("GET", "/api/v1/nodes", undefined, session)).status === 401;
    });
  },
};

const world = {};
let failed = 0;
for (const [name, step] of Object.entries(steps)) {
  const begun = Date.now();
  try {
    await step.call(world);
    console.log(`ok      ${name} (${Date.now() - begun} ms)`);
  } catch (error) {
    console.log(`FAILED  ${name}`);
    console.error(`${name}: ${error.stack}`);
    await world.page?.screenshot({ path: `${shots}/failed.png` }).catch(() => {});
    failed = 1;
    break;
  }
}
if (!failed && complaints.length) {
  console.error(`the browser complains:\n${complaints.join("\n")}`);
  failed = 1;
}
await browser.close();
process.exit(failed);
