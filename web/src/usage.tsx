// The view of usage: how many devices classes and namespaces have held in the last hour, and records of longer times as a file.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { kPeriod, UsageHistory, type By, type Series, type UsageAnswer } from "./history";
import type { Model } from "./model";
import { ask, fetchAs, type Problem } from "./watch";
import { currentLanguage, t, timeOfDay, type Word } from "./words";

const percentText = (part: number) => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

const kShown = 6;
const kHour = 3600;

function Chart({
  times,
  series,
  label,
  themed,
}: {
  times: number[];
  series: Series[];
  label: string;
  themed: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const names = series.map((one) => one.name).join("\n");
  useEffect(() => {
    const element = box.current!;
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--text"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line"), width: 1 },
    };
    plot.current = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height: 200,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { range: (_plot, _low, high) => [high - kHour, high] },
          y: { range: (_plot, _low, high) => [0, Math.max(1, high)] },
        },
        axes: [
          { ...axis, values: (_plot, splits) => splits.map((at) => timeOfDay(at * 1000)) },
          { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
        ],
        series: [
          {},
          ...series.map((_one, index) => ({
            stroke: colour(`--series-${index}`),
            width: 2,
            dash: index % 2 ? [6, 3] : undefined,
            points: { show: false },
          })),
        ],
      },
      [times, ...series.map((one) => one.values)] as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(200, element.clientWidth), height: 200 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names, themed, currentLanguage()]);
  useEffect(
    () => plot.current?.setData([times, ...series.map((one) => one.values)] as uPlot.AlignedData),
    [times, series],
  );
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

function Part({
  history,
  by,
  now,
  title,
  total,
  themed,
}: {
  history: UsageHistory;
  by: By;
  now: Map<string, number>;
  title: string;
  total: number;
  themed: string;
}) {
  const series = history.series(by, kShown, t("other"), now);
  const known = history.seconds();
  return (
    <section class="usage">
      <h2>{title}</h2>
      {series.length === 0 ? (
        <p class="faint">{t("noUsage")}</p>
      ) : (
        <>
          <Chart times={history.times()} series={series} label={title} themed={themed} />
          <table>
            <thead>
              <tr>
                <th scope="col">{by === "byClass" ? t("class") : t("namespace")}</th>
                <th scope="col">{t("now")}</th>
                <th scope="col">{t("most")}</th>
                <th scope="col">{t("deviceHours")}</th>
                <th scope="col">{t("utilisation")}</th>
              </tr>
            </thead>
            <tbody>
              {series.map((one, index) => (
                <tr key={one.name}>
                  <td>
                    <span class={`line series-${index}`} aria-hidden="true" /> {one.name || "-"}
                  </td>
                  <td>{one.now}</td>
                  <td>{Math.round(one.most * 100) / 100}</td>
                  <td>{(one.deviceSeconds / 3600).toFixed(2)}</td>
                  <td>{total && known ? percentText(one.deviceSeconds / known / total) : ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

const kSpans = ["1h", "1d", "7d", "30d"] as const;
const kColumns = ["namespace,class", "namespace,class,pod", "namespace,class,device"] as const;

/** The file is fetched with the token, which a plain link has not. */
async function download(query: URLSearchParams): Promise<void> {
  const answer = await fetchAs("text/csv", `/dibs/usage?${query}`);
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = `dibs-usage-${query.get("since")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), kPeriod);
}

function Download({
  namespace,
  failed,
}: {
  namespace: string;
  failed: (problem: Problem | undefined) => void;
}) {
  const [since, setSince] = useState<string>(kSpans[0]);
  const [by, setBy] = useState<string>(kColumns[0]);
  return (
    <form
      class="bar"
      onSubmit={(event) => {
        event.preventDefault();
        const query = new URLSearchParams({ since, by, format: "csv" });
        if (namespace) query.set("namespace", namespace);
        download(query).then(() => failed(undefined), failed);
      }}
    >
      <label>
        {t("span")}{" "}
        <select value={since} onChange={(event) => setSince(event.currentTarget.value)}>
          {kSpans.map((one) => (
            <option key={one} value={one}>
              {t(`span_${one}` as Word)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t("columns")}{" "}
        <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>
          {kColumns.map((one) => (
            <option key={one} value={one}>
              {one
                .split(",")
                .map((word) => t(word as Word))
                .join(", ")}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">{t("downloadCsv")}</button>
    </form>
  );
}

export function Usage({
  model,
  namespace,
  themed,
}: {
  model: Model;
  namespace: string;
  themed: string;
}) {
  const history = useRef(new UsageHistory());
  const [problem, setProblem] = useState<Problem>();
  const [, setAsked] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    history.current = new UsageHistory();
    const look = async () => {
      const of = namespace ? `&namespace=${encodeURIComponent(namespace)}` : "";
      const query = `${history.current.question(Date.now())}${of}`;
      try {
        const answer = await ask<UsageAnswer>(`/dibs/usage?${query}`, control.signal);
        history.current.merge(answer);
        setProblem(undefined);
      } catch (error) {
        if (control.signal.aborted) return;
        setProblem(error as Problem);
      }
      setAsked((before) => before + 1);
    };
    void look();
    const timer = setInterval(() => void look(), kPeriod);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, [namespace]);
  return (
    <>
      {problem && (
        <p class="error" role="status">
          {t("noRecords")} {problem.message}
        </p>
      )}
      <p class="faint">{t("usageNote")}</p>
      <Download namespace={namespace} failed={setProblem} />
      <div class="tables">
        <Part
          history={history.current}
          by="byClass"
          now={model.byClass}
          title={t("byClass")}
          total={model.whole}
          themed={themed}
        />
        <Part
          history={history.current}
          by="byNamespace"
          now={model.byNamespace}
          title={t("byNamespace")}
          total={model.whole}
          themed={themed}
        />
      </div>
    </>
  );
}
