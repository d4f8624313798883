// What the views show, computed from the objects. No I/O, no clock of its own.

import {
  conditionOf,
  isPodAt,
  keyOf,
  kStages,
  startedAt,
  time,
  type Cluster,
  type Stage,
} from "./cluster";
import type { Claim, Event, Pod, Result, Slice, SliceDevice, Taint, TaintRule } from "./kinds";
import { Counters, nodeOf, poolOf, setsOf } from "./pools";
import { waitingOf, whenOf, type Waiting } from "./waiting";

/** Blocked: nobody has it, but others have used up the counters that it needs. */
export const kStates = ["free", "held", "blocked", "tainted", "unhealthy"] as const;
export type DeviceState = (typeof kStates)[number];

/** How busy a device is, where its driver tells. */
export interface DeviceUsage {
  memory?: { used: number; all: number }; // bytes
  percent?: number;
}

export interface Device {
  id: string; // driver/pool/device
  driver: string;
  pool: string;
  name: string;
  place: string;
  state: DeviceState;
  holders: Claim[];
  taints: { taint: Taint; rule?: string }[];
  illness: string;
  /** A claim has it, and no slice does. */
  gone: boolean;
  usage?: DeviceUsage;
  body: SliceDevice;
}

/** A node, or a pool that belongs to none. */
export interface Place {
  name: string;
  isNode: boolean;
  ready: boolean;
  cordoned: boolean;
  trouble: string;
  devices: Device[];
}

export interface Step {
  stage: Stage;
  at?: number; // milliseconds; undefined: not reached, or nobody knows when
  reached: boolean;
  took?: number; // since the stage before
  exact: boolean; // seen by this page, not only told in seconds
}

export interface Journey {
  key: string;
  kind: "claim" | "pod";
  namespace: string;
  name: string;
  uid: string;
  node: string;
  classes: string[];
  devices: string[];
  claims: string[];
  pods: string[];
  steps: Step[];
  /** The last stage reached, or how it ended. */
  now: Stage | "ended" | "going";
  reason: string;
  created: number;
}

export interface Model {
  places: Place[];
  devices: Device[];
  counts: Record<DeviceState, number>;
  /** How many devices there are, the partitions of one counted together. */
  whole: number;
  journeys: Journey[];
  waiting: Waiting[];
  byClass: Map<string, number>;
  byNamespace: Map<string, number>;
  rules: TaintRule[];
}

export const taintText = (taint: Taint) =>
  `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;

/** "12Gi", "1.5Gi": rounded, as `dibs top` has it. */
export function bytesText(bytes: number): string {
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let amount = bytes;
  let unit = 0;
  for (; amount >= 1023.5 && unit + 1 < units.length; ++unit) amount /= 1024;
  const tenths = Math.round(amount * 10);
  return `${tenths < 100 ? tenths / 10 : Math.round(amount)}${units[unit]}`;
}

export function classesOf(claim: Claim): string[] {
  const found = new Set<string>();
  if (claim.spec?.resourceClassName) found.add(claim.spec.resourceClassName);
  for (const request of claim.spec?.devices?.requests ?? []) {
    const own = request.exactly?.deviceClassName ?? request.deviceClassName;
    if (own) found.add(own);
    for (const one of request.firstAvailable ?? [])
      if (one.deviceClassName) found.add(one.deviceClassName);
  }
  return [...found];
}

/** The class that a result was chosen by. */
export function classOf(claim: Claim, result: Result): string {
  const [name, sub] = (result.request ?? "").split("/");
  const request = claim.spec?.devices?.requests?.find((one) => one.name === name);
  const found = sub
    ? request?.firstAvailable?.find((one) => one.name === sub)?.deviceClassName
    : (request?.exactly?.deviceClassName ?? request?.deviceClassName);
  return found || "-";
}

export const claimNamesOf = (pod: Pod): string[] => {
  const names = (pod.status?.resourceClaimStatuses ?? []).map((one) => one.resourceClaimName);
  for (const one of pod.spec?.resourceClaims ?? []) {
    names.push((one as { resourceClaimName?: string }).resourceClaimName);
  }
  names.push(pod.status?.extendedResourceClaimStatus?.resourceClaimName);
  return [...new Set(names.filter((name): name is string => Boolean(name)))];
};

const resultsOf = (claim: Claim) => claim.status?.allocation?.devices?.results ?? [];
const idOf = (one: { driver: string; pool: string; device: string }) =>
  `${one.driver}/${one.pool}/${one.device}`;

// Words of the page, where nobody has said more.
export const kUnhealthy = "unhealthy";
export const kNotReady = "notReady";

/** As `dibs top` tells: "driver/pool/device", or an id of CDI that ends with the name as a word. */
function namesDevice(id: string, one: { driver: string; pool: string; device: string }): boolean {
  if (id === idOf(one) || id === one.device) return true;
  return ["=", "/", "-"].some((before) => id.endsWith(before + one.device));
}

/** What pods and drivers say of devices: id to words. */
function illnesses(cluster: Cluster): Map<string, string> {
  const found = new Map<string, string>();
  for (const claim of cluster.claims.values()) {
    for (const one of claim.status?.devices ?? []) {
      const bad = one.conditions?.find(
        (condition) => condition.type.endsWith("Ready") && condition.status === "False",
      );
      if (bad) found.set(idOf(one), bad.message || bad.reason || `${bad.type}=False`);
    }
  }
  for (const pod of cluster.pods.values()) {
    for (const container of [
      ...(pod.status?.initContainerStatuses ?? []),
      ...(pod.status?.containerStatuses ?? []),
    ]) {
      for (const entry of container.allocatedResourcesStatus ?? []) {
        for (const resource of entry.resources ?? []) {
          if (resource.health !== "Unhealthy") continue;
          // The id is that of CDI: which device it is, the claim's results tell.
          const name = entry.name.replace(/^claim:/, "").split("/")[0];
          const status = pod.status?.resourceClaimStatuses?.find((one) => one.name === name);
          const spec = pod.spec?.resourceClaims?.find((one) => one.name === name) as
            { resourceClaimName?: string } | undefined;
          const claim = cluster.claims.get(
            `${pod.metadata.namespace}/${status?.resourceClaimName ?? spec?.resourceClaimName ?? ""}`,
          );
          const results = claim ? resultsOf(claim) : [];
          const named = results.filter((one) => namesDevice(resource.resourceID, one));
          // An id that names none of several does not say which of them it is.
          for (const one of results.length === 1 ? results : named)
            found.set(idOf(one), resource.message || kUnhealthy);
        }
      }
    }
  }
  return found;
}

const selects = (
  rule: TaintRule,
  device: { driver: string; pool: string; name: string },
): boolean => {
  const by = rule.spec?.deviceSelector;
  if (!by || by.deviceClassName || (by.selectors?.length ?? 0) > 0) return false;
  return (
    (!by.driver || by.driver === device.driver) &&
    (!by.pool || by.pool === device.pool) &&
    (!by.device || by.device === device.name)
  );
};

/** Rules that choose by expression or class: which devices those are, the page does not know. */
export const isOpaque = (rule: TaintRule): boolean =>
  Boolean(rule.spec?.deviceSelector?.deviceClassName) ||
  (rule.spec?.deviceSelector?.selectors?.length ?? 0) > 0;

const kUsage = "devices.dibs.dev/usage";

/** Undefined where it is no number from 0 to `most`. */
const bounded = (value: unknown, most: number): number | undefined => {
  const whole = typeof value === "number" ? Math.trunc(value) : -1;
  return whole >= 0 && whole <= most ? whole : undefined;
};

/** What a slice tells of devices of its pool, by their names (docs/top.md). */
function usagesIn(slice: Slice): Map<string, DeviceUsage> {
  const found = new Map<string, DeviceUsage>();
  const text = slice.metadata.annotations?.[kUsage];
  if (!text) return found;
  let all: unknown;
  try {
    all = JSON.parse(text);
  } catch {
    // Anybody who may write slices may write anything there.
  }
  if (typeof all !== "object" || all === null || Array.isArray(all)) return found;
  for (const [name, told] of Object.entries(all as Record<string, unknown>)) {
    const one = (told ?? {}) as Record<string, unknown>;
    const memory = bounded(one.memory, Number.MAX_SAFE_INTEGER);
    const used = bounded(one.memoryUsed, memory ?? 0);
    const percent = bounded(one.percent, 100);
    const known = memory && used !== undefined ? { used, all: memory } : undefined;
    if (known || percent !== undefined) found.set(name, { memory: known, percent });
  }
  return found;
}

function makePlaces(cluster: Cluster): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const node of cluster.nodes.values()) {
    const ready = conditionOf(node, "Ready");
    places.set(node.metadata.name, {
      name: node.metadata.name,
      isNode: true,
      ready: ready ? ready.status === "True" : true,
      cordoned: node.spec?.unschedulable === true,
      trouble:
        ready && ready.status !== "True" ? ready.message || ready.reason || ready.status : "",
      devices: [],
    });
  }
  return places;
}

function makeDevices(cluster: Cluster): { places: Place[]; devices: Device[] } {
  const places = makePlaces(cluster);
  const holders = new Map<string, Claim[]>();
  for (const claim of cluster.claims.values()) {
    for (const result of resultsOf(claim)) {
      if (result.adminAccess) continue;
      const id = idOf(result);
      const list = holders.get(id);
      if (list) {
        if (!list.includes(claim)) list.push(claim);
      } else {
        holders.set(id, [claim]);
      }
    }
  }
  const ill = illnesses(cluster);
  // Slices of an older generation are on their way out.
  const newest = new Map<string, number>();
  for (const slice of cluster.slices.values()) {
    const pool = poolOf(slice);
    newest.set(pool, Math.max(newest.get(pool) ?? 0, slice.spec?.pool?.generation ?? 0));
  }
  const current = [...cluster.slices.values()].filter(
    (slice) => (slice.spec?.pool?.generation ?? 0) >= (newest.get(poolOf(slice)) ?? 0),
  );
  // One slice may tell of devices of others.
  const usages = new Map<string, DeviceUsage>();
  for (const slice of current) {
    for (const [name, usage] of usagesIn(slice)) usages.set(`${poolOf(slice)}/${name}`, usage);
  }
  const rules = [...cluster.rules.values()];
  const devices: Device[] = [];
  const placeOf = (name: string, isNode: boolean): Place => {
    let place = places.get(name);
    if (!place) {
      place = { name, isNode, ready: true, cordoned: false, trouble: "", devices: [] };
      places.set(name, place);
    }
    return place;
  };
  const add = (place: Place, driver: string, pool: string, body: SliceDevice, gone: boolean) => {
    const id = `${driver}/${pool}/${body.name}`;
    const taints: Device["taints"] = (body.taints ?? []).map((taint) => ({ taint }));
    for (const rule of rules) {
      if (rule.spec?.taint && selects(rule, { driver, pool, name: body.name })) {
        taints.push({ taint: rule.spec.taint, rule: rule.metadata.name });
      }
    }
    const illness = ill.get(id) ?? (place.ready ? "" : place.trouble || kNotReady);
    const held = holders.get(id) ?? [];
    const bad = taints.some((one) => one.taint.effect !== "None");
    const state: DeviceState =
      illness || gone ? "unhealthy" : bad ? "tainted" : held.length ? "held" : "free";
    const device = {
      id,
      driver,
      pool,
      name: body.name,
      place: place.name,
      state,
      holders: held,
      taints,
      illness,
      gone,
      usage: usages.get(id),
      body,
    };
    place.devices.push(device);
    devices.push(device);
  };
  for (const slice of current) {
    const driver = slice.spec?.driver ?? slice.driverName ?? "";
    const node = slice.spec?.nodeName ?? slice.nodeName ?? "";
    const pool = slice.spec?.pool?.name ?? node;
    const bodies: SliceDevice[] = slice.spec?.devices ?? slice.namedResources?.instances ?? [];
    for (const listed of bodies) {
      const body: SliceDevice = listed.basic ? { name: listed.name, ...listed.basic } : listed;
      const name = body.nodeName || node;
      add(placeOf(name || `${driver}/${pool}`, Boolean(name)), driver, pool, body, false);
    }
  }
  const counters = new Counters(current);
  if (!counters.empty) {
    const poolName = (device: Device) => `${device.driver}/${device.pool}`;
    for (const device of devices)
      if (device.holders.length) counters.take(poolName(device), device.body);
    for (const device of devices)
      if (device.state === "free" && counters.lacks(poolName(device), device.body))
        device.state = "blocked";
  }
  if (cluster.loaded.has("resourceslices")) {
    const known = new Set(devices.map((device) => device.id));
    for (const [id, [claim]] of holders) {
      if (known.has(id)) continue;
      const { driver, pool, device } = resultsOf(claim!).find((one) => idOf(one) === id)!;
      const node = nodeOf(claim!) || (places.has(pool) ? pool : "");
      add(
        placeOf(node || `${driver}/${pool}`, Boolean(node)),
        driver,
        pool,
        { name: device },
        true,
      );
    }
  }
  const order = new Intl.Collator(undefined, { numeric: true }).compare;
  const sorted = [...places.values()].sort(
    (a, b) => Number(b.isNode) - Number(a.isNode) || order(a.name, b.name),
  );
  for (const place of sorted)
    place.devices.sort((a, b) => order(a.driver, b.driver) || order(a.name, b.name));
  return { places: sorted, devices };
}

function stepsOf(
  times: Partial<Record<Stage, number>>,
  reached: (stage: Stage) => boolean,
  seen: Partial<Record<Stage, number>> | undefined,
): Step[] {
  let before: number | undefined;
  let beforeExact = false;
  return kStages.map((stage) => {
    const exact = seen?.[stage] !== undefined && seen.created !== undefined;
    const at = reached(stage) ? (exact ? seen![stage] : times[stage]) : undefined;
    // Seconds of one clock and milliseconds of another make no difference worth showing.
    const comparable = at !== undefined && before !== undefined && exact === beforeExact;
    const step: Step = {
      stage,
      at,
      reached: reached(stage),
      exact,
      took: comparable ? Math.max(0, at - before!) : undefined,
    };
    if (at !== undefined) {
      before = at;
      beforeExact = exact;
    }
    return step;
  });
}

function lastReached(steps: Step[]): Stage {
  let last: Stage = "created";
  for (const step of steps) if (step.reached) last = step.stage;
  return last;
}

const isOver = (pod: Pod) => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";

function podJourney(cluster: Cluster, pod: Pod, explained: string | undefined): Journey {
  const namespace = pod.metadata.namespace ?? "";
  const names = claimNamesOf(pod);
  const claims = names.map((name) => cluster.claims.get(`${namespace}/${name}`));
  const wanted = pod.spec?.resourceClaims?.length ?? 0;
  const isReserved = () =>
    claims.length >= wanted &&
    claims.every((claim) =>
      claim?.status?.reservedFor?.some((one) => one.uid === pod.metadata.uid),
    );
  const hasClaims = wanted > 0 || claims.length > 0;
  const ready = conditionOf(pod, "PodReadyToStartContainers");
  const scheduled = conditionOf(pod, "PodScheduled");
  const times: Partial<Record<Stage, number>> = {
    created: time(pod.metadata.creationTimestamp),
    allocated: scheduled?.status === "True" ? time(scheduled.lastTransitionTime) : undefined,
    prepared: ready?.status === "True" ? time(ready.lastTransitionTime) : undefined,
    running: time(startedAt(pod)),
  };
  const steps = stepsOf(
    times,
    (stage) =>
      stage === "reserved"
        ? hasClaims && (isReserved() || isPodAt(pod, "prepared"))
        : isPodAt(pod, stage),
    cluster.seen.get(pod.metadata.uid),
  );
  return {
    key: `pod/${keyOf(pod)}`,
    kind: "pod",
    namespace,
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    node: pod.spec?.nodeName ?? "",
    classes: [...new Set(claims.flatMap((claim) => (claim ? classesOf(claim) : [])))],
    devices: claims.flatMap((claim) => (claim ? resultsOf(claim).map(idOf) : [])),
    claims: names,
    pods: [],
    steps,
    now: pod.metadata.deletionTimestamp ? "going" : isOver(pod) ? "ended" : lastReached(steps),
    reason:
      scheduled?.status === "False"
        ? (explained ?? scheduled.message ?? "")
        : (pod.status?.message ?? ""),
    created: times.created ?? 0,
  };
}

function claimJourney(cluster: Cluster, claim: Claim): Journey {
  const namespace = claim.metadata.namespace ?? "";
  const users = (claim.status?.reservedFor ?? []).filter(
    (one) => (one.resource ?? "pods") === "pods",
  );
  const pods = users
    .map((one) => cluster.pods.get(`${namespace}/${one.name}`))
    .filter((pod): pod is Pod => pod !== undefined);
  const first = (stage: Stage): number | undefined => {
    let found: number | undefined;
    for (const pod of pods) {
      const at =
        stage === "running"
          ? time(startedAt(pod))
          : time(
              conditionOf(pod, "PodReadyToStartContainers")?.status === "True"
                ? conditionOf(pod, "PodReadyToStartContainers")?.lastTransitionTime
                : undefined,
            );
      if (at !== undefined && (found === undefined || at < found)) found = at;
    }
    return found;
  };
  const own = cluster.seen.get(claim.metadata.uid);
  const seen = own && { ...own };
  if (seen) {
    for (const stage of ["prepared", "running"] as const) {
      const found = pods
        .map((pod) => cluster.seen.get(pod.metadata.uid)?.[stage])
        .filter((at): at is number => at !== undefined);
      if (found.length) seen[stage] = Math.min(...found);
      else delete seen[stage];
    }
  }
  const steps = stepsOf(
    {
      created: time(claim.metadata.creationTimestamp),
      allocated: time(claim.status?.allocation?.allocationTimestamp),
      prepared: first("prepared"),
      running: first("running"),
    },
    (stage) => {
      if (stage === "created") return true;
      if (stage === "allocated") return Boolean(claim.status?.allocation);
      if (stage === "reserved") return (claim.status?.reservedFor?.length ?? 0) > 0;
      return pods.some((pod) => isPodAt(pod, stage));
    },
    seen,
  );
  return {
    key: `claim/${keyOf(claim)}`,
    kind: "claim",
    namespace,
    name: claim.metadata.name,
    uid: claim.metadata.uid,
    node: pods[0]?.spec?.nodeName ?? "",
    classes: classesOf(claim),
    devices: resultsOf(claim).map(idOf),
    claims: [],
    pods: users.map((one) => one.name),
    steps,
    now: claim.metadata.deletionTimestamp ? "going" : lastReached(steps),
    reason: "",
    created: time(claim.metadata.creationTimestamp) ?? 0,
  };
}

/** What speaks against each node, as `dibs why` tells, by the uid of the pod. */
function explanations(cluster: Cluster): Map<string, string> {
  const newest = new Map<string, Event>();
  for (const event of cluster.explained.values()) {
    const uid = event.involvedObject?.uid ?? "";
    const known = newest.get(uid);
    if (!known || whenOf(known) <= whenOf(event)) newest.set(uid, event);
  }
  return new Map([...newest].map(([uid, event]) => [uid, event.message ?? ""]));
}

/** As usage counts: partitions are parts of the sets of counters that they draw on. */
function wholeOf(devices: Device[]): number {
  const sets = new Set<string>();
  let others = 0;
  for (const device of devices) {
    const own = setsOf(`${device.driver}/${device.pool}`, device.body);
    for (const set of own) sets.add(set);
    if (own.length === 0 && !device.gone) ++others;
  }
  return others + sets.size;
}

export function makeModel(cluster: Cluster): Model {
  const { places, devices } = makeDevices(cluster);
  const counts = Object.fromEntries(kStates.map((state) => [state, 0])) as Record<
    DeviceState,
    number
  >;
  for (const device of devices) counts[device.state]++;
  const byClass = new Map<string, number>();
  const byNamespace = new Map<string, number>();
  const journeys: Journey[] = [];
  for (const claim of cluster.claims.values()) {
    journeys.push(claimJourney(cluster, claim));
    for (const result of resultsOf(claim)) {
      if (result.adminAccess) continue;
      const name = classOf(claim, result);
      byClass.set(name, (byClass.get(name) ?? 0) + 1);
      const namespace = claim.metadata.namespace ?? "";
      byNamespace.set(namespace, (byNamespace.get(namespace) ?? 0) + 1);
    }
  }
  const explained = explanations(cluster);
  for (const pod of cluster.pods.values())
    journeys.push(podJourney(cluster, pod, explained.get(pod.metadata.uid)));
  journeys.sort((a, b) => b.created - a.created || a.key.localeCompare(b.key));
  return {
    places,
    devices,
    counts,
    whole: wholeOf(devices),
    journeys,
    waiting: waitingOf(cluster, journeys),
    byClass,
    byNamespace,
    rules: [...cluster.rules.values()],
  };
}
