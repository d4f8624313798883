// What the page knows of the cluster: the objects as the server has them, and when this page saw each stage reached.

import type { Claim, Event, Node, Pod, Slice, TaintRule, Thing } from "./kinds";
import { ask, watchAll, type Problem } from "./watch";

export type Kind =
  | "nodes"
  | "pods"
  | "events"
  | "explained"
  | "resourceclaims"
  | "resourceslices"
  | "devicetaintrules";

/** Of a pod or a claim. A pod is scheduled where a claim is allocated. */
export const kStages = ["created", "allocated", "reserved", "prepared", "running"] as const;
export type Stage = (typeof kStages)[number];
export type Seen = Partial<Record<Stage, number>>;

export interface Cluster {
  nodes: Map<string, Node>;
  pods: Map<string, Pod>;
  claims: Map<string, Claim>;
  slices: Map<string, Slice>;
  rules: Map<string, TaintRule>;
  /** Warnings. */
  events: Map<string, Event>;
  /** What the scheduler explains of pods without a node (docs/why.md). */
  explained: Map<string, Event>;
  /** By uid; only of what came to be while the page was open. */
  seen: Map<string, Seen>;
  problems: Map<Kind, Problem>;
  /** Kinds that were listed. */
  loaded: Set<Kind>;
  /** Kinds that this server does not have. */
  absent: Set<Kind>;
  /** Set where only the objects of one namespace may be seen. */
  namespace: string;
}

export function emptyCluster(): Cluster {
  return {
    nodes: new Map(),
    pods: new Map(),
    claims: new Map(),
    slices: new Map(),
    rules: new Map(),
    events: new Map(),
    explained: new Map(),
    seen: new Map(),
    problems: new Map(),
    loaded: new Set(),
    absent: new Set(),
    namespace: "",
  };
}

/** In milliseconds. */
export const time = (text: string | null | undefined): number | undefined => {
  if (!text) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
};

export const keyOf = (thing: Thing) =>
  thing.metadata.namespace
    ? `${thing.metadata.namespace}/${thing.metadata.name}`
    : thing.metadata.name;

export function conditionOf(
  thing: {
    status?: {
      conditions?: {
        type: string;
        status: string;
        lastTransitionTime?: string;
        message?: string;
        reason?: string;
      }[];
    };
  },
  type: string,
) {
  return thing.status?.conditions?.find((one) => one.type === type);
}

export function startedAt(pod: Pod): string | undefined {
  let first: string | undefined;
  for (const one of pod.status?.containerStatuses ?? []) {
    const at = one.state?.running?.startedAt ?? one.state?.terminated?.startedAt;
    if (at && (!first || at < first)) first = at;
  }
  return first;
}

export function isPodAt(pod: Pod, stage: Stage): boolean {
  if (stage === "allocated") return Boolean(pod.spec?.nodeName);
  if (stage === "prepared")
    return (
      conditionOf(pod, "PodReadyToStartContainers")?.status === "True" || isPodAt(pod, "running")
    );
  if (stage === "running") return startedAt(pod) !== undefined;
  return stage === "created";
}

function isClaimAt(claim: Claim, stage: Stage): boolean {
  if (stage === "allocated") return Boolean(claim.status?.allocation);
  if (stage === "reserved") return (claim.status?.reservedFor?.length ?? 0) > 0;
  return stage === "created";
}

const kMostSeen = 20000;

function note(
  cluster: Cluster,
  thing: Thing,
  isNew: boolean,
  isAt: (stage: Stage) => boolean,
): void {
  const uid = thing.metadata.uid;
  let seen = cluster.seen.get(uid);
  if (!seen) {
    if (!isNew || cluster.seen.size >= kMostSeen) return;
    seen = {};
    cluster.seen.set(uid, seen);
  }
  const now = Date.now();
  for (const stage of kStages) if (seen[stage] === undefined && isAt(stage)) seen[stage] = now;
}

type Things = Map<string, Thing>;

function tableOf(cluster: Cluster, kind: Kind): Things {
  const tables: Record<Kind, unknown> = {
    nodes: cluster.nodes,
    pods: cluster.pods,
    events: cluster.events,
    explained: cluster.explained,
    resourceclaims: cluster.claims,
    resourceslices: cluster.slices,
    devicetaintrules: cluster.rules,
  };
  return tables[kind] as Things;
}

export function put(cluster: Cluster, kind: Kind, thing: Thing): void {
  const table = tableOf(cluster, kind);
  const key = keyOf(thing);
  const isNew = table.get(key)?.metadata.uid !== thing.metadata.uid;
  table.set(key, thing);
  if (kind === "pods") note(cluster, thing, isNew, (stage) => isPodAt(thing as Pod, stage));
  if (kind === "resourceclaims")
    note(cluster, thing, isNew, (stage) => isClaimAt(thing as Claim, stage));
}

function drop(cluster: Cluster, kind: Kind, thing: Thing): void {
  tableOf(cluster, kind).delete(keyOf(thing));
  cluster.seen.delete(thing.metadata.uid);
}

interface Discovered {
  resources?: { name: string; namespaced?: boolean }[];
}

const kKinds: Kind[] = ["resourceclaims", "resourceslices", "devicetaintrules"];

/** The path of each kind of resource.k8s.io in the newest version that has it. */
async function discover(): Promise<Map<Kind, string>> {
  const paths = new Map<Kind, string>();
  let versions: string[];
  try {
    const group = await ask<{ versions?: { version: string }[] }>("/apis/resource.k8s.io");
    versions = (group.versions ?? []).map((one) => one.version);
  } catch (error) {
    if ((error as Problem).status === 404) return paths;
    throw error;
  }
  // The server names them best first.
  for (const version of versions) {
    if (paths.size === kKinds.length) break;
    const found = await ask<Discovered>(`/apis/resource.k8s.io/${version}`);
    for (const kind of kKinds) {
      if (!paths.has(kind) && found.resources?.some((one) => one.name === kind)) {
        paths.set(kind, `/apis/resource.k8s.io/${version}`);
      }
    }
  }
  return paths;
}

/** Follows everything; `changed` is called often. Returns what stops it. */
export function followCluster(
  cluster: Cluster,
  namespace: string,
  changed: () => void,
): () => void {
  const stops: (() => void)[] = [];
  let stopped = false;
  cluster.namespace = namespace;
  const begin = (kind: Kind, root: string, namespaced: boolean, resource: string = kind) => {
    const where = namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    stops.push(
      watchAll(`${root}${where}/${resource}`, {
        reset(things) {
          const first = !cluster.loaded.has(kind);
          const table = tableOf(cluster, kind);
          if (first) {
            table.clear();
            for (const thing of things) table.set(keyOf(thing), thing);
          } else {
            const there = new Set(things.map(keyOf));
            for (const [key, old] of table) if (!there.has(key)) drop(cluster, kind, old);
            for (const thing of things) put(cluster, kind, thing);
          }
          cluster.loaded.add(kind);
          changed();
        },
        changed(thing) {
          put(cluster, kind, thing);
          changed();
        },
        removed(thing) {
          drop(cluster, kind, thing);
          changed();
        },
        problem(problem) {
          if (problem) cluster.problems.set(kind, problem);
          else if (!cluster.problems.delete(kind)) return;
          changed();
        },
      }),
    );
  };
  begin("nodes", "/api/v1", false);
  begin("pods", "/api/v1", true);
  begin("events", "/api/v1", true, "events?fieldSelector=type%3DWarning");
  begin("explained", "/api/v1", true, "events?fieldSelector=reason%3DExplained");
  const find = async () => {
    let paths: Map<Kind, string>;
    for (;;) {
      try {
        paths = await discover();
        break;
      } catch (error) {
        if (stopped) return;
        cluster.problems.set("resourceclaims", error as Problem);
        changed();
        if ((error as Problem).status === 401) return;
        await new Promise((go) => setTimeout(go, 3000));
      }
    }
    if (stopped) return;
    for (const kind of kKinds) {
      const root = paths.get(kind);
      if (root) begin(kind, root, kind === "resourceclaims");
      else cluster.absent.add(kind);
    }
    changed();
  };
  void find();
  return () => {
    stopped = true;
    for (const stop of stops) stop();
  };
}
