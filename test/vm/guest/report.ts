// What a check says to the host: lines on the virtual machine's serial port. One check that fails leaves the others be.

import { openPort } from '../../../labs/vm/port.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Message } from '../results.ts';

const write = openPort();
const send = (message: Message): void => write(JSON.stringify(message));

export function note(text: string): void {
  const seconds = process.uptime().toFixed(0).padStart(5);
  send({ kind: 'note', text: `${seconds} s  ${text}` });
}

export function end(): void {
  send({ kind: 'end' });
}

/** What was seen, and whether it is what it should be. */
export interface Finding {
  readonly held: boolean;
  readonly saw: string;
}

/** Runs one check; what it throws is how it failed. Resolves with whether it held. */
export async function check(name: string, body: () => Promise<Finding> | Finding): Promise<boolean> {
  try {
    const { held, saw } = await body();
    send({ kind: 'check', name, held, saw });
    return held;
  } catch (error) {
    send({ kind: 'check', name, held: false, saw: errorMessage(error) });
    return false;
  }
}

/** Values by name against what they have to be; both are shown where they differ. */
export function compare(seen: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): Finding {
  const lines = Object.entries(wanted).map(([name, value]) => {
    const is = seen[name] ?? '(nothing)';
    return is === value ? `${name}: ${is}` : `${name}: ${is}, wanted ${value}`;
  });
  return { held: Object.entries(wanted).every(([name, value]) => seen[name] === value), saw: lines.join('\n') };
}
