// The site of the documents, opened from the disk. Run by run.py browser, which says in the environment where everything is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const { SITE: site, CHROMIUM: executablePath, SHOTS: shots } = process.env;
const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);
const place = (path) => pathToFileURL(`${site}/${path}`).href;
const kLooks = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 640 }, colorScheme: "light" },
};
const kPages = [
  "index.html",
  "first-steps.html",
  "flags.html",
  "commands.html",
  "zh/index.html",
  "zh/gpu.html",
  "zh/why.html",
  "zh/plan.html",
];

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const complaints = [];
try {
  for (const [look, options] of Object.entries(kLooks)) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) complaints.push(`asks for ${request.url()}`);
    });
    for (const path of kPages) {
      await page.goto(place(path));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${path}, ${look}: ${wide} pixels wider than the window`);
      await page.screenshot({ path: `${shots}/${look}-${path.replace("/", "-")}.png` });
      await page.evaluate(axeSource);
      const found = await page.evaluate(() => globalThis.axe.run(document, { preload: false }));
      const text = found.violations.map(
        (one) => `${one.id}: ${one.help}\n${one.nodes.map((node) => node.html).join("\n")}`,
      );
      assert.deepEqual(text, [], `axe finds in ${path}, ${look}`);
    }

    await page.goto(place("first-steps.html"));
    await page.keyboard.press("/");
    await page.keyboard.type("lease etcd");
    await page.locator("#_found a", { hasText: /etcd/i }).first().click();
    await page.waitForURL((url) => !url.href.includes("first-steps"));
    await page.goBack();
    await page.locator(".languages a").click();
    await page.waitForURL(place("zh/first-steps.html"));
    await page.locator("h1", { hasText: "第一步" }).waitFor();
    await page.fill("search input", "资源声明");
    await page.locator("#_found a").first().waitFor();
    await page.screenshot({ path: `${shots}/${look}-search.png` });
    await page.fill("search input", "qqxxyy");
    await page.locator("#_found p", { hasText: "没有找到" }).waitFor();
    await page.keyboard.press("Escape");
    const menu = page.locator(".menu");
    if (look === "phone") {
      assert.equal(await menu.getAttribute("open"), null, "the menu covers a phone's screen");
      await menu.locator("summary").click();
    }
    await menu.locator("a", { hasText: "1.27" }).click();
    await page.waitForURL(place("zh/classic.html"));
    console.log(`ok      ${look}`);
    await context.close();
  }
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
}
