// Where a command prints, and how it says what went wrong: crictl's short form of a level and the seconds since its start
// ("FATA[0000] …"). Never ends the process.

import type { Readable, Writable } from 'node:stream';
import { type EpochMs, elapsedMs } from '../../lib/clock.ts';

export type Level = 'DEBU' | 'INFO' | 'WARN' | 'ERRO' | 'FATA';

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown };
  readonly stdout: Writable & { readonly columns?: number; readonly rows?: number; readonly isTTY?: boolean };
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => EpochMs;
}

export class Console {
  readonly terminal: Terminal;
  readonly #startedAt: EpochMs;

  constructor(terminal: Terminal) {
    this.terminal = terminal;
    this.#startedAt = terminal.now();
  }

  now(): EpochMs {
    return this.terminal.now();
  }

  print(text: string): void {
    this.terminal.stdout.write(text);
  }

  line(text: string): void {
    this.print(`${text}\n`);
  }

  log(level: Level, message: string): void {
    const seconds = Math.trunc(elapsedMs(this.#startedAt, this.now()) / 1000);
    this.terminal.stderr.write(`${level}[${String(seconds).padStart(4, '0')}] ${message}\n`);
  }
}
