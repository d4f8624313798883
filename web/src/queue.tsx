// The view of what waits, with the reasons that the scheduler and the nodes give.

import { stageWord } from "./journeys";
import type { Model } from "./model";
import type { Waiting } from "./waiting";
import { span, t } from "./words";

const kMost = 200;
// What is being deleted is no news until it takes longer than it may.
const kGoes = 10000;

const usual = (one: Waiting): string => {
  if (one.kind === "claim") return t("waitsAllocation");
  return one.stage === "created" ? t("waitsScheduler") : t("waitsNode");
};

const reasonText = (one: Waiting): string => {
  if (one.lists) return `${t(one.lists)}: ${one.reason}`;
  return one.reason || (one.messages.length === 0 ? usual(one) : "");
};

export function Queue({ model, now }: { model: Model; now: number }) {
  const waiting = model.waiting.filter((one) => one.due === undefined || now > one.due + kGoes);
  if (waiting.length === 0) return <p class="faint">{t("nothingWaits")}</p>;
  return (
    <section aria-label={t("queue")}>
      <ol class="queue">
        {waiting.slice(0, kMost).map((one) => (
          <li key={one.key}>
            <h2>
              {t(one.kind)} {one.namespace}/{one.name}
            </h2>
            <p class="faint">
              {t("waitsFor")} {span(Math.max(0, now - one.since), false)} ·{" "}
              {t(stageWord(one.kind, one.stage))}
            </p>
            <p class="reason">{reasonText(one)}</p>
            {one.messages.length > 0 && (
              <ul>
                {one.messages.map((text) => (
                  <li key={text}>{text}</li>
                ))}
              </ul>
            )}
            <p class="faint">
              {t("moreBy")}{" "}
              <code>
                dibs why {one.kind}/{one.name} -n {one.namespace}
              </code>
            </p>
          </li>
        ))}
      </ol>
      {waiting.length > kMost && (
        <p class="faint">
          … {waiting.length} {t("rows")}
        </p>
      )}
    </section>
  );
}
