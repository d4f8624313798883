// What devices of one pool mean to each other: partitions of the same hardware draw on the same counters.

import type { Claim, Slice, SliceDevice } from "./kinds";

const kUnits: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A quantity of the API as a number; 0 where it is none. */
export function amountOf(text: string | undefined): number {
  const found = /^([+-]?[0-9]*\.?[0-9]+\.?)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)$/.exec(
    text ?? "",
  );
  if (!found) return 0;
  const unit = kUnits[found[2]!];
  return unit === undefined ? Number(`${found[1]}${found[2]}`) : Number(found[1]) * unit;
}

/** "driver/pool"; in v1alpha2 the node is the pool. */
export function poolOf(slice: Slice): string {
  const driver = slice.spec?.driver ?? slice.driverName ?? "";
  return `${driver}/${slice.spec?.pool?.name ?? slice.spec?.nodeName ?? slice.nodeName ?? ""}`;
}

/** The sets of counters that a device of the pool draws on. */
export const setsOf = (pool: string, device: SliceDevice): string[] =>
  (device.consumesCounters ?? []).map((one) => `${pool}/${one.counterSet}`);

/** Of slices of the newest generation: how much of each counter of a pool nobody has taken, and what that leaves. */
export class Counters {
  private left = new Map<string, number>(); // by "driver/pool/set/counter"

  constructor(slices: Slice[]) {
    for (const slice of slices) {
      for (const set of slice.spec?.sharedCounters ?? []) {
        for (const [name, counter] of Object.entries(set.counters ?? {}))
          this.left.set(`${poolOf(slice)}/${set.name}/${name}`, amountOf(counter.value));
      }
    }
  }

  get empty(): boolean {
    return this.left.size === 0;
  }

  private *amounts(pool: string, device: SliceDevice): Generator<[string, number]> {
    for (const one of device.consumesCounters ?? []) {
      for (const [name, counter] of Object.entries(one.counters ?? {})) {
        const key = `${pool}/${one.counterSet}/${name}`;
        if (this.left.has(key)) yield [key, amountOf(counter.value)];
      }
    }
  }

  take(pool: string, device: SliceDevice): void {
    for (const [key, amount] of this.amounts(pool, device))
      this.left.set(key, this.left.get(key)! - amount);
  }

  /** Others have used up what the device needs. */
  lacks(pool: string, device: SliceDevice): boolean {
    for (const [key, amount] of this.amounts(pool, device))
      if (amount > this.left.get(key)!) return true;
    return false;
  }
}

/** The node that an allocation is bound to, "" where it is bound to none. */
export function nodeOf(claim: Claim): string {
  for (const term of claim.status?.allocation?.nodeSelector?.nodeSelectorTerms ?? []) {
    for (const field of term.matchFields ?? [])
      if (field.key === "metadata.name") return field.values?.[0] ?? "";
  }
  return "";
}
