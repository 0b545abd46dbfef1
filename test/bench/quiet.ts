// Waits until the machine has done what the last measurement left: kernel threads take network namespaces, mounts and
// cgroups away for some time after the calls that did so have returned, and what is measured next would wait behind them.

import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** How long processors have to be idle, ms; the kernel counts in ticks of 10 ms. */
const WINDOW_MS = 60;
/** The share of the window in which processors may work: timers, this process itself. */
const MOST_BUSY = 0.15;
/** Where other programs work all the time there is no quiet to wait for. */
const GIVE_UP_MS = 3_000;

/**
 * The share of all processors' time between two readings of /proc/stat in which something ran, 0 to 1. Programs of low
 * priority (nice) do not count: they give way. Pure.
 */
export function busyShare(before: string, after: string): number {
  const [from, to] = [ticks(before), ticks(after)];
  const all = to.all - from.all;
  return all <= 0 ? 0 : (to.busy - from.busy) / all;
}

function ticks(stat: string): { readonly all: number; readonly busy: number } {
  const fields = /^cpu +(.*)$/m.exec(stat)?.[1]?.split(' ').map(Number) ?? [];
  // proc(5): the time of guests, from the ninth on, is in user and nice already.
  const [user = NaN, nice = NaN, system = NaN, idle = NaN, iowait = 0, irq = 0, softirq = 0, steal = 0] = fields;
  const busy = user + system + irq + softirq;
  if (Number.isNaN(busy + idle)) throw new Error('/proc/stat has no line of all processors');
  return { all: busy + nice + idle + iowait + steal, busy };
}

export async function machineQuiet(): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  let before = readFileSync('/proc/stat', 'utf8');
  while (performance.now() < giveUpAt) {
    await setTimeout(WINDOW_MS);
    const now = readFileSync('/proc/stat', 'utf8');
    if (busyShare(before, now) <= MOST_BUSY) return;
    before = now;
  }
}
