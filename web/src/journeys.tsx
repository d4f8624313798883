// The view of claims and pods: which stage each has reached, and how long each stage took.

import { useMemo, useState } from "preact/hooks";
import { List } from "./list";
import type { Journey, Model, Step } from "./model";
import { clock, span, t, type Word } from "./words";

/** A pod is scheduled where a claim is allocated. */
export const stageWord = (kind: "claim" | "pod", stage: Journey["now"]): Word =>
  kind === "pod" && stage === "allocated" ? "stage_scheduled" : `stage_${stage}`;

const tookText = (step: Step): string =>
  step.took === undefined ? "" : span(step.took, step.exact);

function Row({ one }: { one: Journey }) {
  return (
    <>
      <span class="cell kind">{t(one.kind)}</span>
      <span class="cell name" title={`${one.namespace}/${one.name}`}>
        <span class="faint">{one.namespace}/</span>
        {one.name}
      </span>
      <span class="cell steps" aria-hidden="true">
        {one.steps.map((step) => (
          <span key={step.stage} class={`step ${step.reached ? "reached" : ""} ${step.stage}`}>
            {tookText(step)}
          </span>
        ))}
      </span>
      <span class="cell now">{t(stageWord(one.kind, one.now))}</span>
      <span class="cell node faint">{one.node}</span>
    </>
  );
}

function Detail({ one }: { one: Journey | undefined }) {
  if (!one) return <p class="faint">{t("stagesHint")}</p>;
  return (
    <>
      <h2>
        {t(one.kind)} {one.namespace}/{one.name}
      </h2>
      <ol class="stages">
        {one.steps.map((step) => (
          <li key={step.stage} class={step.reached ? "reached" : ""}>
            <strong>{t(stageWord(one.kind, step.stage))}</strong>{" "}
            {step.at !== undefined ? (
              clock(step.at)
            ) : step.reached ? (
              <span class="faint">{t("noTime")}</span>
            ) : (
              <span class="faint">{t("notYet")}</span>
            )}
            {step.took !== undefined && (
              <span>
                {" "}
                · {t("took")} {tookText(step)}
              </span>
            )}
          </li>
        ))}
      </ol>
      {one.reason && <p>{one.reason}</p>}
      <dl>
        {one.node && (
          <>
            <dt>{t("node")}</dt>
            <dd>{one.node}</dd>
          </>
        )}
        {one.classes.length > 0 && (
          <>
            <dt>{t("class")}</dt>
            <dd>{one.classes.join(", ")}</dd>
          </>
        )}
        {one.devices.length > 0 && (
          <>
            <dt>{t("devices")}</dt>
            <dd>
              <ul class="plain">
                {one.devices.map((id) => (
                  <li key={id}>{id}</li>
                ))}
              </ul>
            </dd>
          </>
        )}
        {one.claims.length > 0 && (
          <>
            <dt>{t("claims")}</dt>
            <dd>{one.claims.join(", ")}</dd>
          </>
        )}
        {one.pods.length > 0 && (
          <>
            <dt>{t("pods")}</dt>
            <dd>{one.pods.join(", ")}</dd>
          </>
        )}
      </dl>
      <p class="faint">{t("stagesHint")}</p>
    </>
  );
}

type Kind = "all" | "claim" | "pod";

export function Journeys({ model }: { model: Model }) {
  const [find, setFind] = useState("");
  const [kind, setKind] = useState<Kind>("all");
  const [selected, setSelected] = useState("");
  const rows = useMemo(() => {
    const text = find.trim().toLowerCase();
    return model.journeys.filter(
      (one) =>
        (kind === "all" || one.kind === kind) &&
        (!text ||
          `${one.namespace}/${one.name}`.toLowerCase().includes(text) ||
          one.node.toLowerCase().includes(text) ||
          one.classes.some((name) => name.toLowerCase().includes(text)) ||
          t(stageWord(one.kind, one.now)).toLowerCase() === text),
    );
  }, [model, find, kind]);
  return (
    <div class="split">
      <section class="main" aria-label={t("journeys")}>
        <div class="bar">
          <label>
            {t("find")}{" "}
            <input
              type="search"
              value={find}
              placeholder={t("findJourneys")}
              onInput={(event) => setFind(event.currentTarget.value)}
            />
          </label>
          <label>
            {t("kind")}{" "}
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
              <option value="all">{t("all")}</option>
              <option value="claim">{t("claims")}</option>
              <option value="pod">{t("pods")}</option>
            </select>
          </label>
          <ul class="legend" aria-label={t("stages")}>
            {(["created", "allocated", "reserved", "prepared", "running"] as const).map((stage) => (
              <li key={stage}>
                <span class={`step reached ${stage}`} aria-hidden="true" />
                {stage === "allocated"
                  ? `${t("stage_allocated")} / ${t("stage_scheduled")}`
                  : t(`stage_${stage}`)}
              </li>
            ))}
          </ul>
        </div>
        {model.journeys.length === 0 ? (
          <p class="faint">{t("noJourneys")}</p>
        ) : rows.length === 0 ? (
          <p class="faint">{t("noMatch")}</p>
        ) : (
          <List
            rows={rows}
            height={32}
            label={t("journeys")}
            keyOf={(one) => one.key}
            selected={selected}
            select={setSelected}
            draw={(one) => <Row one={one} />}
          />
        )}
      </section>
      <aside class="detail" aria-live="polite" aria-label={t("selected")}>
        <Detail one={model.journeys.find((one) => one.key === selected)} />
      </aside>
    </div>
  );
}
