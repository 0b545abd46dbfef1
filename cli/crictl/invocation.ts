// What a command is given, and what the table of commands says of each. Types, and the one error that means "show the
// help of this command".

import type { FlagSpec, Flags } from './arguments.ts';
import type { Console } from './console.ts';
import type { Cri } from './cri.ts';
import type { Settings } from './settings.ts';

export interface Invocation {
  readonly flags: Flags;
  readonly args: readonly string[];
  readonly settings: Settings;
  readonly configPath: string;
  readonly console: Console;
  /** Aborts with the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** The runtime; the same one however often it is opened, closed after the command. */
  openCri(): Promise<Cri>;
}

export interface CommandSpec {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly usage: string;
  /** "CONTAINER-ID [CONTAINER-ID...]" */
  readonly args?: string;
  readonly flags: readonly FlagSpec[];
  /** What follows the first word is another program's command line. */
  readonly flagsFirst?: boolean;
  /** Rejects with UserError for what the user can mend. */
  readonly run: (invocation: Invocation) => Promise<void>;
}

/** The arguments make no sense: crictl shows the command's help, and does not count that as a failure. */
export class ShowHelp extends Error {
  override name = 'ShowHelp';
}
