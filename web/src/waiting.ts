// What waits, and what is said of it.

import { conditionOf, time, type Cluster } from "./cluster";
import type { Event, Pod } from "./kinds";
import type { Journey } from "./model";

export interface Waiting {
  key: string;
  kind: "claim" | "pod";
  namespace: string;
  name: string;
  since: number;
  /** Of what is being deleted: when it should have been gone. */
  due?: number;
  stage: Journey["now"];
  /** What the reason lists, where it is a list of names. */
  lists?: "finalizers" | "schedulingGates";
  reason: string;
  messages: string[];
}

export const whenOf = (event: Event) =>
  time(event.series?.lastObservedTime) ??
  time(event.lastTimestamp) ??
  time(event.eventTime) ??
  time(event.metadata.creationTimestamp) ??
  0;

const kMessages = 4;

export function waitingOf(cluster: Cluster, journeys: Journey[]): Waiting[] {
  const events = new Map<string, Event[]>();
  for (const event of cluster.events.values()) {
    const uid = event.involvedObject?.uid;
    if (!uid) continue;
    const list = events.get(uid);
    if (list) list.push(event);
    else events.set(uid, [event]);
  }
  const said = (uid: string): string[] => {
    const list = (events.get(uid) ?? []).sort((a, b) => whenOf(b) - whenOf(a));
    return [...new Set(list.map((event) => `${event.reason ?? ""}: ${event.message ?? ""}`))].slice(
      0,
      kMessages,
    );
  };
  // A claim waits for what the pods wait for that are to use it.
  const users = new Map<string, Journey>();
  for (const one of journeys) {
    if (one.kind === "claim" || one.node || !one.reason) continue;
    for (const name of one.claims) users.set(`${one.namespace}/${name}`, one);
  }
  const waiting: Waiting[] = [];
  for (const one of journeys) {
    const isClaim = one.kind === "claim";
    if (one.now === "ended" || (isClaim && one.steps[1]!.reached && one.now !== "going")) continue;
    const thing = isClaim
      ? cluster.claims.get(`${one.namespace}/${one.name}`)
      : cluster.pods.get(`${one.namespace}/${one.name}`);
    if (!thing) continue;
    const common = {
      key: one.key,
      kind: one.kind,
      namespace: one.namespace,
      name: one.name,
      since: one.created,
      stage: one.now,
    };
    if (one.now === "going") {
      const due = time(thing.metadata.deletionTimestamp) ?? 0;
      const finalizers = thing.metadata.finalizers ?? [];
      const lists = finalizers.length ? ("finalizers" as const) : undefined;
      const reason = finalizers.join(", ");
      waiting.push({ ...common, since: due, due, lists, reason, messages: said(one.uid) });
      continue;
    }
    if (isClaim) {
      const user = users.get(`${one.namespace}/${one.name}`);
      const reason = user ? `pod ${user.name}: ${user.reason}` : "";
      waiting.push({ ...common, reason, messages: said(one.uid) });
      continue;
    }
    const pod = thing as Pod;
    const ready = conditionOf(pod, "Ready");
    if (one.now === "running") {
      if (ready?.status !== "False") continue;
      const reason = ready.message || ready.reason || "";
      const since = time(ready.lastTransitionTime) ?? one.created;
      waiting.push({ ...common, since, reason, messages: said(one.uid) });
      continue;
    }
    const gates = pod.spec?.schedulingGates ?? [];
    let reason = one.reason;
    const lists = !one.node && gates.length ? ("schedulingGates" as const) : undefined;
    if (lists) reason = gates.map((gate) => gate.name).join(", ");
    if (one.node) {
      const held = [
        ...(pod.status?.initContainerStatuses ?? []),
        ...(pod.status?.containerStatuses ?? []),
      ].find((status) => status.state?.waiting);
      const why = held?.state?.waiting;
      reason = why ? [why.reason, why.message].filter(Boolean).join(": ") : "";
    }
    // The event that says the same as the condition says nothing more.
    const messages = said(one.uid).filter((text) => !reason || !text.endsWith(reason));
    waiting.push({ ...common, lists, reason, messages });
  }
  return waiting.sort((a, b) => a.since - b.since || a.key.localeCompare(b.key));
}
