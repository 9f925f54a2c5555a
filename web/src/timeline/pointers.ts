// Pointers on the timeline: one drags, two pinch, and a press without a move chooses.

import type { Navigation } from "./navigation";

export class Pointers {
  private readonly down = new Map<number, { x: number; y: number }>();
  private moved = false;

  press(event: PointerEvent): void {
    this.down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = false;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  }

  /** Returns whether the pointer drags. */
  move(event: PointerEvent, navigation: Navigation): boolean {
    const before = this.down.get(event.pointerId);
    if (!before) return false;
    const now = { x: event.offsetX, y: event.offsetY };
    const [other] = [...this.down].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (Math.abs(now.x - before.x) + Math.abs(now.y - before.y) > 1) this.moved = true;
    if (other) {
      const [gap, wanted] = [Math.abs(before.x - other.x), Math.abs(now.x - other.x)];
      if (gap > 8 && wanted > 8) navigation.zoom(wanted / gap, navigation.timeAt((now.x + other.x) / 2));
    } else navigation.pan((before.x - now.x) / Math.max(navigation.width - navigation.gutter, 1), before.y - now.y);
    this.down.set(event.pointerId, now);
    return true;
  }

  /** Returns whether the pointer has pressed without a move. */
  release(event: PointerEvent): boolean {
    return this.down.delete(event.pointerId) && !this.moved;
  }

  cancel(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }
}

/** The wheel scrolls lanes, with Shift time, and with Ctrl it zooms. */
export function turn(event: WheelEvent, navigation: Navigation): void {
  if (event.ctrlKey || event.metaKey) navigation.zoom(Math.exp(-event.deltaY / 200), navigation.timeAt(event.offsetX));
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
    navigation.pan((event.deltaX || event.deltaY) / navigation.width);
  else {
    const before = navigation.view.top;
    navigation.scroll(event.deltaY);
    // At its ends the page scrolls on.
    if (navigation.view.top === before) return;
  }
  event.preventDefault();
}
