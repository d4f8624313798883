// How many devices each class and each namespace has held, minute by minute for an hour, as the server has recorded it.

export const kPeriod = 5000;
const kStep = 60000;
const kHour = 3600000;

/** Of GET /dibs/usage by namespace and class. */
export interface UsageRow {
  from: string;
  to: string;
  namespace: string;
  class: string;
  deviceSeconds: number;
}

export interface UsageAnswer {
  from: string;
  to: string;
  items: UsageRow[];
}

interface Minute {
  seconds: number;
  byClass: Map<string, number>; // device-seconds
  byNamespace: Map<string, number>;
}

export type By = "byClass" | "byNamespace";

export interface Series {
  name: string;
  values: number[];
  now: number;
  most: number;
  deviceSeconds: number;
}

const add = (sums: Map<string, number>, name: string, seconds: number) =>
  sums.set(name, (sums.get(name) ?? 0) + seconds);

export class UsageHistory {
  private minutes = new Map<number, Minute>(); // by when it began

  /** What to ask the server for: the last hour, or what is new of it. */
  question(now: number): string {
    const hour = Math.floor((now - kHour) / kStep) * kStep;
    const last = Math.max(0, ...this.minutes.keys());
    // The last minute had not ended.
    return new URLSearchParams({
      by: "namespace,class",
      step: `${kStep / 1000}s`,
      from: new Date(Math.max(hour, last)).toISOString(),
    }).toString();
  }

  merge(answer: UsageAnswer): void {
    const from = Date.parse(answer.from);
    const to = Date.parse(answer.to);
    for (const begun of [...this.minutes.keys()]) if (begun >= from) this.minutes.delete(begun);
    for (let begun = from; begun < to; begun += kStep) {
      this.minutes.set(begun, {
        seconds: Math.min(kStep, to - begun) / 1000,
        byClass: new Map(),
        byNamespace: new Map(),
      });
    }
    for (const row of answer.items) {
      const minute = this.minutes.get(Date.parse(row.from));
      if (!minute) continue;
      add(minute.byClass, row.class, row.deviceSeconds);
      add(minute.byNamespace, row.namespace, row.deviceSeconds);
    }
    for (const begun of [...this.minutes.keys()])
      if (begun < to - kHour - kStep) this.minutes.delete(begun);
  }

  private ordered(): [number, Minute][] {
    return [...this.minutes].sort(([a], [b]) => a - b);
  }

  /** In seconds, in the middle of each minute. */
  times(): number[] {
    return this.ordered().map(([begun, minute]) => begun / 1000 + minute.seconds / 2);
  }

  /** How much of the last hour is known, in seconds. */
  seconds(): number {
    return this.ordered().reduce((sum, [, minute]) => sum + minute.seconds, 0);
  }

  /** Those that held most, `count` of them, and the rest together under `others`; `now`: what each holds at this moment. */
  series(by: By, count: number, others: string, now: Map<string, number>): Series[] {
    const minutes = this.ordered().map(([, minute]) => minute);
    const sums = new Map<string, number>();
    for (const name of now.keys()) sums.set(name, 0);
    for (const minute of minutes) for (const [name, held] of minute[by]) add(sums, name, held);
    const names = [...sums.keys()].sort(
      (a, b) => sums.get(b)! - sums.get(a)! || a.localeCompare(b),
    );
    const made = (name: string, of: string[]): Series => {
      const values = minutes.map(
        (minute) =>
          of.reduce((sum, one) => sum + (minute[by].get(one) ?? 0), 0) / (minute.seconds || 1),
      );
      return {
        name,
        values,
        now: of.reduce((sum, one) => sum + (now.get(one) ?? 0), 0),
        most: Math.max(0, ...values),
        deviceSeconds: of.reduce((sum, one) => sum + sums.get(one)!, 0),
      };
    };
    const shown = names.slice(0, count).map((name) => made(name, [name]));
    const rest = names.slice(count);
    return rest.length ? [...shown, made(others, rest)] : shown;
  }
}
