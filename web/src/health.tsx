// The view of what is wrong: taints, rules that set them, devices and nodes that are ill.

import type { ComponentChildren } from "preact";
import { illnessText } from "./devices";
import { isOpaque, taintText, type Model } from "./model";
import type { TaintRule } from "./kinds";
import { clock, t } from "./words";

const kMost = 500;

function Table({
  title,
  heads,
  rows,
}: {
  title: string;
  heads: string[];
  rows: { key: string; cells: ComponentChildren[] }[];
}) {
  return (
    <section class="table">
      <h2>
        {title} <span class="faint">{rows.length || t("allWell")}</span>
      </h2>
      {rows.length > 0 && (
        // A wide table is scrolled by keyboard, too.
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead>
              <tr>
                {heads.map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, kMost).map((row) => (
                <tr key={row.key}>
                  {row.cells.map((cell, index) => (
                    <td key={index}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length > kMost && (
            <p class="faint">
              … {rows.length} {t("rows")}
            </p>
          )}
        </div>
      )}
    </section>
  );
}

function selectorText(rule: TaintRule): string {
  const by = rule.spec?.deviceSelector;
  if (!by) return t("none");
  const parts = [
    by.driver,
    by.pool,
    by.device,
    by.deviceClassName && `${t("class")} ${by.deviceClassName}`,
  ].filter(Boolean);
  return parts.length ? parts.join(" / ") : t("everything");
}

export function Health({ model }: { model: Model }) {
  const tainted = model.devices.filter((device) => device.taints.length > 0);
  const sick = model.devices.filter((device) => device.illness || device.gone);
  const nodes = model.places.filter((place) => place.isNode && (!place.ready || place.cordoned));
  return (
    <div class="tables">
      <Table
        title={t("deviceTaints")}
        heads={[t("node"), t("device"), t("taints"), t("rule"), t("since"), t("holder")]}
        rows={tainted.flatMap((device) =>
          device.taints.map((one, index) => ({
            key: `${device.id} ${index}`,
            cells: [
              device.place,
              device.name,
              taintText(one.taint),
              one.rule ?? t("fromSlice"),
              one.taint.timeAdded ? clock(Date.parse(one.taint.timeAdded)) : "",
              device.holders
                .map((claim) => `${claim.metadata.namespace}/${claim.metadata.name}`)
                .join(", "),
            ],
          })),
        )}
      />
      <Table
        title={t("taintRules")}
        heads={[t("rule"), t("selects"), t("taints"), t("state")]}
        rows={model.rules.map((rule) => ({
          key: rule.metadata.name,
          cells: [
            rule.metadata.name,
            <>
              {selectorText(rule)} {isOpaque(rule) && <span class="faint">({t("opaque")})</span>}
            </>,
            rule.spec?.taint ? taintText(rule.spec.taint) : "",
            (rule.status?.conditions ?? [])
              .map((one) => one.message || `${one.type}=${one.status}`)
              .join("; "),
          ],
        }))}
      />
      <Table
        title={t("sick")}
        heads={[t("node"), t("device"), t("trouble"), t("holder")]}
        rows={sick.map((device) => ({
          key: device.id,
          cells: [
            device.place,
            device.name,
            illnessText(device),
            device.holders
              .map((claim) => `${claim.metadata.namespace}/${claim.metadata.name}`)
              .join(", "),
          ],
        }))}
      />
      <Table
        title={t("sickNodes")}
        heads={[t("node"), t("trouble")]}
        rows={nodes.map((place) => ({
          key: place.name,
          cells: [
            place.name,
            [!place.ready && `${t("notReady")}: ${place.trouble}`, place.cordoned && t("cordoned")]
              .filter(Boolean)
              .join("; "),
          ],
        }))}
      />
    </div>
  );
}
