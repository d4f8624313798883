// The view of devices: the map, and what is known of the device that is chosen.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { keyOf } from "./cluster";
import { hit, layOut, nextLine, paint, type Colours } from "./map";
import {
  bytesText,
  kNotReady,
  kStates,
  kUnhealthy,
  taintText,
  type Device,
  type Model,
  type Place,
} from "./model";
import { clock, t } from "./words";

const variable = (style: CSSStyleDeclaration, name: string) => style.getPropertyValue(name).trim();

function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  return {
    text: variable(style, "--text"),
    faint: variable(style, "--faint"),
    tile: variable(style, "--tile"),
    focus: variable(style, "--focus"),
    states: {
      free: variable(style, "--free"),
      held: variable(style, "--held"),
      blocked: variable(style, "--blocked"),
      tainted: variable(style, "--tainted"),
      unhealthy: variable(style, "--unhealthy"),
    },
  };
}

function matches(device: Device, place: Place, text: string): boolean {
  return (
    place.name.toLowerCase().includes(text) ||
    device.id.toLowerCase().includes(text) ||
    t(device.state).toLowerCase() === text ||
    device.state === text ||
    device.holders.some(
      (claim) =>
        keyOf(claim).toLowerCase().includes(text) ||
        (claim.status?.reservedFor ?? []).some((one) => one.name.toLowerCase().includes(text)),
    )
  );
}

function chosen(places: Place[], find: string): Place[] {
  const text = find.trim().toLowerCase();
  if (!text) return places;
  return places
    .map((place) => ({
      ...place,
      devices: place.devices.filter((device) => matches(device, place, text)),
    }))
    .filter((place) => place.devices.length > 0 || place.name.toLowerCase().includes(text));
}

const valueText = (value: unknown): string => {
  if (value === null || typeof value !== "object") return String(value);
  const inner = Object.values(value as Record<string, unknown>)[0];
  return Array.isArray(inner) ? inner.join(", ") : String(inner ?? "");
};

function Pairs({ title, pairs }: { title: string; pairs: [string, unknown][] }) {
  if (!pairs.length) return null;
  return (
    <>
      <dt>{title}</dt>
      <dd>
        <ul class="plain">
          {pairs.map(([name, value]) => (
            <li key={name}>
              <span class="faint">{name}</span> {valueText(value)}
            </li>
          ))}
        </ul>
      </dd>
    </>
  );
}

function Meter({
  title,
  value,
  most,
  text,
}: {
  title: string;
  value: number;
  most: number;
  text: string;
}) {
  return (
    <>
      <dt>{title}</dt>
      <dd>
        {text} <meter aria-label={title} min={0} max={most} value={value} />
      </dd>
    </>
  );
}

const illnessWords = (illness: string): string =>
  illness === kUnhealthy || illness === kNotReady ? t(illness) : illness;

export const illnessText = (device: Device): string =>
  [device.gone && t("gone"), illnessWords(device.illness)].filter(Boolean).join("; ");

function Detail({ device, place }: { device: Device | undefined; place: Place | undefined }) {
  if (!device) return <p class="faint">{t("mapHint")}</p>;
  const memory = device.usage?.memory;
  const percent = device.usage?.percent;
  return (
    <>
      <h2>{device.name}</h2>
      <dl>
        <dt>{t("state")}</dt>
        <dd>
          <span class={`chip ${device.state}`}>{t(device.state)}</span>{" "}
          {device.state === "blocked" ? t("blockedHint") : illnessText(device)}
        </dd>
        <dt>{place?.isNode ? t("node") : t("pool")}</dt>
        <dd>
          {device.place}
          {place && !place.ready && ` (${t("notReady")})`}
          {place?.cordoned && ` (${t("cordoned")})`}
        </dd>
        <dt>{t("driver")}</dt>
        <dd>
          {device.driver} · {t("pool")} {device.pool}
        </dd>
        <dt>{t("holder")}</dt>
        <dd>
          {device.holders.length === 0 && t("nobody")}
          <ul class="plain">
            {device.holders.map((claim) => (
              <li key={claim.metadata.uid}>
                {t("claim")} {keyOf(claim)}
                {(claim.status?.reservedFor ?? []).length > 0 &&
                  ` ${t("forPods")} ${(claim.status?.reservedFor ?? []).map((one) => one.name).join(", ")}`}
                {claim.status?.allocation?.allocationTimestamp && (
                  <span class="faint">
                    {" "}
                    {t("since")} {clock(Date.parse(claim.status.allocation.allocationTimestamp))}
                  </span>
                )}
              </li>
            ))}
          </ul>
        </dd>
        {memory && (
          <Meter
            title={t("memoryUsed")}
            value={memory.used}
            most={memory.all}
            text={`${bytesText(memory.used)}/${bytesText(memory.all)}`}
          />
        )}
        {percent !== undefined && (
          <Meter title={t("utilisation")} value={percent} most={100} text={`${percent} %`} />
        )}
        <dt>{t("taints")}</dt>
        <dd>
          {device.taints.length === 0 && t("none")}
          <ul class="plain">
            {device.taints.map((one, index) => (
              <li key={index}>
                {taintText(one.taint)}{" "}
                {one.rule && (
                  <span class="faint">
                    ({t("rule")} {one.rule})
                  </span>
                )}
              </li>
            ))}
          </ul>
        </dd>
        <Pairs title={t("attributes")} pairs={Object.entries(device.body.attributes ?? {})} />
        <Pairs title={t("capacity")} pairs={Object.entries(device.body.capacity ?? {})} />
      </dl>
    </>
  );
}

export function Devices({ model, themed }: { model: Model; themed: string }) {
  const [find, setFind] = useState("");
  const [selected, setSelected] = useState("");
  const [width, setWidth] = useState(600);
  const [focused, setFocused] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painted = useRef(0);
  const places = useMemo(() => chosen(model.places, find), [model, find]);
  const layout = useMemo(() => layOut(places, width), [places, width]);
  const device = model.devices.find((one) => one.id === selected);

  const repaint = () => {
    if (painted.current) return;
    painted.current = requestAnimationFrame(() => {
      painted.current = 0;
      const element = canvas.current;
      const frame = box.current;
      const pen = element?.getContext("2d");
      if (!element || !frame || !pen) return;
      const scale = window.devicePixelRatio || 1;
      const view = {
        top: frame.scrollTop,
        width: frame.clientWidth,
        height: frame.clientHeight,
        scale,
      };
      const wide = Math.round(view.width * scale);
      const high = Math.round(view.height * scale);
      if (element.width !== wide || element.height !== high) {
        element.width = wide;
        element.height = high;
        element.style.width = `${view.width}px`;
        element.style.height = `${view.height}px`;
      }
      paint(
        pen,
        current.current.layout,
        view,
        coloursOf(frame),
        current.current.selected,
        current.current.focused,
      );
    });
  };
  const current = useRef({ layout, selected, focused });
  current.current = { layout, selected, focused };

  useLayoutEffect(() => {
    const frame = box.current!;
    const measure = () => {
      setWidth(frame.clientWidth);
      repaint();
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(frame);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", repaint);
    return () => scheme.removeEventListener("change", repaint);
  }, []);
  useEffect(repaint, [layout, selected, focused, themed]);

  const choose = (next: Device | undefined) => {
    if (!next) return;
    setSelected(next.id);
    const spot = layout.spot.get(next.id);
    const frame = box.current!;
    if (!spot) return;
    if (spot.y < frame.scrollTop + 24) frame.scrollTop = spot.y - 24;
    else if (spot.y + 24 > frame.scrollTop + frame.clientHeight)
      frame.scrollTop = spot.y + 24 - frame.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { order } = layout;
    const at = order.findIndex((one) => one.id === selected);
    const from = order[at];
    const moves: Record<string, () => Device | undefined> = {
      ArrowRight: () => order[Math.min(order.length - 1, at + 1)],
      ArrowLeft: () => order[Math.max(0, at - 1)],
      ArrowDown: () => (from ? nextLine(layout, from, true) : order[0]),
      ArrowUp: () => (from ? nextLine(layout, from, false) : order[0]),
      Home: () => order[0],
      End: () => order[order.length - 1],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    choose(move());
  };
  const onClick = (event: MouseEvent) => {
    const frame = box.current!;
    const edge = frame.getBoundingClientRect();
    choose(hit(layout, event.clientX - edge.left, event.clientY - edge.top + frame.scrollTop));
  };
  const nodes = model.places.filter((place) => place.isNode).length;
  return (
    <div class="split">
      <section class="main" aria-label={t("devices")}>
        <div class="bar">
          <label>
            {t("find")}{" "}
            <input
              type="search"
              value={find}
              placeholder={t("findDevices")}
              onInput={(event) => setFind(event.currentTarget.value)}
            />
          </label>
          <ul class="legend" aria-label={t("state")}>
            {kStates
              .filter((state) => state !== "blocked" || model.counts.blocked > 0)
              .map((state) => (
                <li key={state}>
                  <span class={`mark ${state}`} aria-hidden="true" />
                  {t(state)} <strong data-count={state}>{model.counts[state]}</strong>
                </li>
              ))}
            <li class="faint">
              {nodes} {t("nodes")} · {model.devices.length} {t("deviceCount")}
            </li>
          </ul>
        </div>
        {model.devices.length === 0 && <p class="faint">{t("noDevices")}</p>}
        {model.devices.length > 0 && layout.tiles.length === 0 && (
          <p class="faint">{t("noMatch")}</p>
        )}
        <div
          class="map"
          ref={box}
          tabIndex={0}
          role="application"
          aria-label={t("mapLabel")}
          aria-describedby="device-detail"
          onScroll={repaint}
          onKeyDown={onKeyDown}
          onClick={onClick}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
        >
          <div class="map-all" style={{ height: `${layout.height}px` }}>
            <canvas ref={canvas} aria-hidden="true" />
          </div>
        </div>
      </section>
      <aside class="detail" id="device-detail" aria-live="polite" aria-label={t("selected")}>
        <Detail
          device={device}
          place={model.places.find((place) => place.name === device?.place)}
        />
      </aside>
    </div>
  );
}
