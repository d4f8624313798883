// Lists a collection and follows its changes, over fetch. Reconnects by itself until it is stopped.

import { bearer } from "./session";
import type { Thing } from "./kinds";

export interface Problem {
  status: number; // 0: the server cannot be reached
  message: string;
}

export interface Follower {
  /** Everything there is now. */
  reset(things: Thing[]): void;
  changed(thing: Thing): void;
  removed(thing: Thing): void;
  /** Undefined when it goes well again. */
  problem(problem: Problem | undefined): void;
}

const kPage = 500;
const kFirstDelay = 500;
const kLongestDelay = 15000;
const kLasted = 1000;

/** The answer, whatever its form. Throws a Problem. */
export async function fetchAs(
  accept: string,
  path: string,
  signal?: AbortSignal,
): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      signal,
      headers: { Authorization: `Bearer ${bearer()}`, Accept: accept },
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw { status: 0, message: String(error) } satisfies Problem;
  }
  if (!answer.ok) {
    const text = await answer.text().catch(() => "");
    let message = text.trim() || answer.statusText;
    try {
      message = (JSON.parse(text) as { message?: string }).message ?? message;
    } catch {
      // Not a Status: the text says it.
    }
    throw { status: answer.status, message } satisfies Problem;
  }
  return answer;
}

export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await fetchAs("application/json", path, signal)).json()) as T;
}

function slim<T extends Thing>(thing: T): T {
  delete thing.metadata.managedFields;
  return thing;
}

interface List {
  metadata: { resourceVersion?: string; continue?: string };
  items: Thing[] | null;
}

const joined = (path: string, query: string) => path + (path.includes("?") ? "&" : "?") + query;

async function list(
  path: string,
  signal: AbortSignal,
): Promise<{ items: Thing[]; version: string }> {
  const items: Thing[] = [];
  let next = "";
  for (;;) {
    const page = await ask<List>(
      joined(path, `limit=${kPage}${next ? `&continue=${encodeURIComponent(next)}` : ""}`),
      signal,
    );
    for (const item of page.items ?? []) items.push(slim(item));
    next = page.metadata.continue ?? "";
    if (!next) return { items, version: page.metadata.resourceVersion ?? "" };
  }
}

/** Follows from a version on, and says when it does and which one it has come to: "" is to list again. */
async function follow(
  path: string,
  from: string,
  to: Follower,
  signal: AbortSignal,
  begins: () => void,
  cameTo: (version: string) => void,
): Promise<void> {
  let answer: Response;
  try {
    answer = await fetchAs(
      "application/json",
      joined(path, `watch=1&allowWatchBookmarks=1&resourceVersion=${encodeURIComponent(from)}`),
      signal,
    );
  } catch (error) {
    if ((error as Problem).status === 410) return cameTo("");
    throw error;
  }
  begins();
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    let begin = 0;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n", begin)) {
      const line = rest.slice(begin, end);
      begin = end + 1;
      if (!line) continue;
      const event = JSON.parse(line) as { type: string; object: Thing };
      if (event.type === "ERROR") return cameTo("");
      const version = event.object.metadata.resourceVersion;
      if (version) cameTo(version);
      if (event.type === "BOOKMARK") continue;
      if (event.type === "DELETED") to.removed(event.object);
      else to.changed(slim(event.object));
    }
    rest = rest.slice(begin);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const timer = setTimeout(go, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        go();
      },
      { once: true },
    );
  });
}

/** Returns what stops it. */
export function watchAll(path: string, to: Follower): () => void {
  const control = new AbortController();
  const { signal } = control;
  const run = async () => {
    let version = "";
    let delay = kFirstDelay;
    while (!signal.aborted) {
      let begun = Infinity;
      let lost: Problem | undefined;
      const begins = () => {
        begun = Date.now();
        to.problem(undefined);
      };
      try {
        if (!version) {
          const found = await list(path, signal);
          to.reset(found.items);
          version = found.version;
        }
        await follow(path, version, to, signal, begins, (one) => (version = one));
      } catch (error) {
        if (signal.aborted) return;
        lost = error as Problem;
        if (typeof lost.status !== "number") lost = { status: 0, message: String(error) };
        if (lost.status !== 0) version = "";
      }
      const lasted = Date.now() - begun > kLasted;
      // A server that ends each watch at once must not be asked in a circle.
      if (lasted) delay = kFirstDelay;
      if (lost) {
        // Browsers break streams whenever the machine gets an interface, as it does with each pod: that is no news
        // where the next one opens.
        if (lasted && lost.status === 0) continue;
        to.problem(lost);
        if (lost.status === 401) return;
      }
      await pause(delay, signal);
      delay = Math.min(delay * 2, kLongestDelay);
    }
  };
  void run();
  return () => control.abort();
}
