// Fills a cluster and takes a picture of its page. Run by picture.py, which says in the environment where everything is.

import { chromium } from "playwright-core";

const { URL: url, TOKEN: token, LINK: link, CHROMIUM: executablePath, OUT: out } = process.env;
const kResource = "resource.k8s.io/v1";
/// How many devices the pods of each namespace ask for.
const kWork = {
  training: [8, 8, 8, 4, 4, 8, 2, 8, 4, 8, 8, 8],
  serving: Array.from({ length: 40 }, (_, at) => 1 + (at % 3)),
  lab: Array.from({ length: 24 }, (_, at) => 1 + (at % 2)),
};

async function make(path, body) {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

/// A pod of `namespace` with a claim for `count` devices.
async function work(namespace, name, count) {
  await make(`/apis/${kResource}/namespaces/${namespace}/resourceclaims`, {
    metadata: { name },
    spec: {
      devices: {
        requests: [{ name: "gpu", exactly: { deviceClassName: "gpu.example.com", count } }],
      },
    },
  });
  await make(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name },
    spec: {
      containers: [{ name: "main", image: "busybox", resources: { claims: [{ name: "gpu" }] } }],
      resourceClaims: [{ name: "gpu", resourceClaimName: name }],
    },
  });
}

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
try {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    locale: "en-GB",
    viewport: { width: 1200, height: 600 },
    deviceScaleFactor: 2,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(90000);
  await page.goto(link);

  let held = 0;
  for (const [namespace, counts] of Object.entries(kWork)) {
    await make("/api/v1/namespaces", { metadata: { name: namespace } });
    for (const [number, count] of counts.entries()) {
      await work(namespace, `${namespace}-${number}`, count);
      held += count;
    }
  }
  for (const pool of ["node-13", "node-42"]) {
    await make(`/apis/${kResource}/devicetaintrules`, {
      metadata: { name: `repair-${pool}` },
      spec: {
        deviceSelector: { driver: "gpu.example.com", pool },
        taint: { key: "example.com/repair", value: "fan", effect: "NoSchedule" },
      },
    });
  }
  // Tainted devices that somebody holds count as tainted: what is left of both is free.
  await page.locator('[data-count="tainted"]', { hasText: /^16$/ }).waitFor();
  await page.waitForFunction(
    (free) => Number(document.querySelector('[data-count="free"]').textContent) <= free,
    64 * 8 - held,
  );
  // By the mouse: the ring around what has the focus is for the keyboard.
  await page.click(".map", { position: { x: 12, y: 30 } });
  await page.locator(".detail h2", { hasText: "gpu-" }).waitFor();
  await page.screenshot({ path: out });
} finally {
  await browser.close();
}
