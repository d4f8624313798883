// Where each device lies on the map, and how it is painted. Only what is in sight is painted.

import type { Device, DeviceState, Place } from "./model";

export const kCell = 14;
const kGap = 3;
const kPadding = 6;
const kTitle = 15;
const kAcross = 8;

export interface Tile {
  place: Place;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  tiles: Tile[];
  columns: number;
  height: number;
  /** All devices in the order of the map. */
  order: Device[];
  spot: Map<string, { x: number; y: number }>;
}

export function layOut(places: Place[], width: number): Layout {
  const tileWidth = kAcross * (kCell + kGap) - kGap + 2 * kPadding;
  const columns = Math.max(1, Math.floor((width + kGap) / (tileWidth + kGap * 2)));
  const tiles: Tile[] = [];
  const order: Device[] = [];
  const spot = new Map<string, { x: number; y: number }>();
  let y = 0;
  for (let first = 0; first < places.length; first += columns) {
    const row = places.slice(first, first + columns);
    const most = Math.max(1, ...row.map((place) => Math.ceil(place.devices.length / kAcross)));
    const height = kTitle + 2 * kPadding + most * (kCell + kGap) - kGap;
    row.forEach((place, column) => {
      const x = column * (tileWidth + kGap * 2);
      tiles.push({ place, x, y, width: tileWidth, height });
      place.devices.forEach((device, index) => {
        order.push(device);
        spot.set(device.id, {
          x: x + kPadding + (index % kAcross) * (kCell + kGap),
          y: y + kTitle + kPadding + Math.floor(index / kAcross) * (kCell + kGap),
        });
      });
    });
    y += height + kGap * 2;
  }
  return { tiles, columns, height: y, order, spot };
}

/** The device at a point, or nothing. */
export function hit(layout: Layout, x: number, y: number): Device | undefined {
  const tile = layout.tiles.find(
    (one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height,
  );
  return tile?.place.devices.find((device) => {
    const spot = layout.spot.get(device.id)!;
    return x >= spot.x - 1 && x <= spot.x + kCell + 1 && y >= spot.y - 1 && y <= spot.y + kCell + 1;
  });
}

/** The device above or below, the nearest in the next line that has one. */
export function nextLine(layout: Layout, from: Device, down: boolean): Device | undefined {
  const here = layout.spot.get(from.id);
  if (!here) return undefined;
  let best: Device | undefined;
  let bestY = 0;
  let bestX = 0;
  for (const device of layout.order) {
    const spot = layout.spot.get(device.id)!;
    if (down ? spot.y <= here.y : spot.y >= here.y) continue;
    const nearer = best === undefined || (down ? spot.y < bestY : spot.y > bestY);
    const besides = Math.abs(spot.x - here.x);
    if (nearer || (spot.y === bestY && besides < bestX)) {
      best = device;
      bestY = spot.y;
      bestX = besides;
    }
  }
  return best;
}

export interface Colours {
  text: string;
  faint: string;
  tile: string;
  focus: string;
  states: Record<DeviceState, string>;
}

/** Colour alone does not tell states apart: each has its mark, too. */
function paintDevice(
  pen: CanvasRenderingContext2D,
  device: Device,
  x: number,
  y: number,
  colours: Colours,
): void {
  const colour = colours.states[device.state];
  pen.fillStyle = colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  if (device.state === "free") {
    pen.strokeRect(x + 0.75, y + 0.75, kCell - 1.5, kCell - 1.5);
    return;
  }
  if (device.state === "held") {
    pen.fillRect(x, y, kCell, kCell);
    return;
  }
  pen.strokeRect(x + 0.75, y + 0.75, kCell - 1.5, kCell - 1.5);
  pen.beginPath();
  if (device.state === "blocked") {
    pen.moveTo(x + 4, y + kCell / 2);
    pen.lineTo(x + kCell - 4, y + kCell / 2);
  } else if (device.state === "tainted") {
    pen.moveTo(x + 1, y + kCell - 1);
    pen.lineTo(x + kCell - 1, y + 1);
    pen.moveTo(x + 1, y + kCell / 2);
    pen.lineTo(x + kCell / 2, y + 1);
    pen.moveTo(x + kCell / 2, y + kCell - 1);
    pen.lineTo(x + kCell - 1, y + kCell / 2);
  } else {
    pen.moveTo(x + 2, y + 2);
    pen.lineTo(x + kCell - 2, y + kCell - 2);
    pen.moveTo(x + 2, y + kCell - 2);
    pen.lineTo(x + kCell - 2, y + 2);
  }
  pen.stroke();
  if (device.holders.length) pen.fillRect(x + kCell / 2 - 2.5, y + kCell / 2 - 2.5, 5, 5);
}

export function paint(
  pen: CanvasRenderingContext2D,
  layout: Layout,
  view: { top: number; width: number; height: number; scale: number },
  colours: Colours,
  selected: string,
  focused: boolean,
): void {
  pen.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  pen.translate(0, -view.top);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "top";
  for (const tile of layout.tiles) {
    if (tile.y + tile.height < view.top || tile.y > view.top + view.height) continue;
    pen.fillStyle = colours.tile;
    pen.fillRect(tile.x, tile.y, tile.width, tile.height);
    if (!tile.place.ready || tile.place.cordoned) {
      pen.strokeStyle = tile.place.ready ? colours.states.tainted : colours.states.unhealthy;
      pen.lineWidth = 1;
      pen.strokeRect(tile.x + 0.5, tile.y + 0.5, tile.width - 1, tile.height - 1);
    }
    pen.save();
    pen.beginPath();
    pen.rect(tile.x, tile.y, tile.width - 4, tile.height);
    pen.clip();
    pen.fillStyle = colours.text;
    pen.fillText(tile.place.name, tile.x + kPadding, tile.y + 5);
    pen.restore();
    for (const device of tile.place.devices) {
      const spot = layout.spot.get(device.id)!;
      paintDevice(pen, device, spot.x, spot.y, colours);
      if (device.id === selected) {
        pen.strokeStyle = colours.focus;
        pen.lineWidth = focused ? 3 : 2;
        pen.strokeRect(spot.x - 2, spot.y - 2, kCell + 4, kCell + 4);
      }
    }
  }
}
