// Many people look at one cluster. Run by bench/page: a line "open" when all pages show the cluster's devices; for every name that comes
// in on standard input a line "seen" when all of them show the claim of that name; the end of the input closes them.

import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const { LINKS, CHROMIUM: executablePath, PATIENCE } = process.env;
const timeout = Number(PATIENCE) * 1000;

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"],
});
/// Chromium gives up what it loads when the machine gets an interface meanwhile.
const visit = async (page, link) => {
  for (let left = 5; ; --left) {
    try {
      return await page.goto(link);
    } catch (error) {
      if (!left || !error.message.includes("ERR_NETWORK_CHANGED")) throw error;
    }
  }
};
const open = async (link) => {
  // Small windows: what is painted is the browser's work, and not what is measured.
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 400, height: 500 } });
  const page = await context.newPage();
  page.setDefaultTimeout(timeout);
  await visit(page, link);
  await page.locator("[data-count]").first().waitFor();
  return page;
};
try {
  const pages = [];
  for (const link of LINKS.split(" ")) pages.push(await open(link));
  for (const page of pages) {
    await page.evaluate(() => (location.hash = "#journeys"));
    await page.locator("[role=option]").first().waitFor();
  }
  console.log("open");
  for await (const name of createInterface({ input: process.stdin })) {
    await Promise.all(pages.map((page) => page.locator("[role=option]", { hasText: name }).first().waitFor()));
    console.log("seen");
  }
} finally {
  await browser.close();
}
