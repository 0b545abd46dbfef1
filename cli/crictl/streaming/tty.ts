// The user's terminal: raw mode while a remote one is attached, its size, the keys that detach, and a password without
// echo.

import { UserError } from '../../../lib/errors.ts';
import type { Terminal } from '../console.ts';

export interface Size {
  readonly Width: number;
  readonly Height: number;
}

export function terminalSize({ stdout }: Terminal): Size | undefined {
  const { columns, rows } = stdout;
  return columns === undefined || rows === undefined ? undefined : { Width: columns, Height: rows };
}

/** Runs `body` with keys passed on as they are; the terminal is put back whatever happens. Throws UserError without one. */
export async function inRawMode<T>({ stdin }: Terminal, body: () => Promise<T>): Promise<T> {
  if (stdin.isTTY !== true || stdin.setRawMode === undefined) throw new UserError('input is not a terminal');
  stdin.setRawMode(true);
  try {
    return await body();
  } finally {
    stdin.setRawMode(false);
  }
}

/** ctrl-p, ctrl-q */
const DETACH = [0x10, 0x11];

/** Finds the detach keys in what is typed, across chunks. Pure but for what it has seen. */
export class DetachKeys {
  #seen = 0;

  /** What may be passed on of `chunk`, and whether the keys are complete. A first key waits for the next one. */
  push(chunk: Buffer): { readonly pass: Buffer; readonly detach: boolean } {
    const pass: number[] = [];
    for (const byte of chunk) {
      if (byte === DETACH[this.#seen]) {
        this.#seen++;
        if (this.#seen === DETACH.length) return { pass: Buffer.from(pass), detach: true };
        continue;
      }
      pass.push(...DETACH.slice(0, this.#seen));
      this.#seen = byte === DETACH[0] ? 1 : 0;
      if (this.#seen === 0) pass.push(byte);
    }
    return { pass: Buffer.from(pass), detach: false };
  }
}

/** One line, not shown where stdin is a terminal. */
export async function readPassword(terminal: Terminal): Promise<string> {
  const { stdin, stdout } = terminal;
  stdout.write('Enter Password:');
  const read = async (): Promise<string> => {
    let typed = '';
    for await (const chunk of stdin) {
      for (const letter of String(chunk)) {
        if (letter === '\n' || letter === '\r' || letter === '\x04') return typed;
        if (letter === '\x03') throw new UserError('interrupted');
        typed = letter === '\x7f' ? typed.slice(0, -1) : typed + letter;
      }
    }
    return typed;
  };
  try {
    return await (stdin.isTTY === true ? inRawMode(terminal, read) : read());
  } finally {
    stdout.write('\n');
    stdin.destroy();
  }
}
