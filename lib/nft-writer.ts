// Keeps one table of nftables as it is wanted: runs nft with what nft-table.ts decides. What it wrote last is known; after a failure nothing
// is, and all is written anew.

import { errorMessage } from './errors.ts';
import { type Exec, exec, execOk } from './exec.ts';
import {
  changeCommands,
  DECLARATION_PROBE,
  declaredOtherwise,
  firstDamage,
  fullCommands,
  leftBehind,
  type NftForm,
  type NftTable,
  removalCommands,
  rulesIn,
} from './nft-table.ts';

const LIMIT_MS = 60_000;
const MAX_LIST_BYTES = 256 * 1024 * 1024;

export interface NftWriterOptions {
  /** Family and name: "ip kube-proxy". */
  readonly table: string;
  /** The comment that the table has. */
  readonly comment: string;
  readonly run?: Exec | undefined;
}

export class NftWriter {
  readonly #table: string;
  readonly #comment: string;
  readonly #run: Exec;
  #written: NftTable | undefined;
  /** Of changes; unknown before the first. */
  #form: NftForm | undefined;
  /** What nothing leads to any longer. */
  readonly #stale = { chains: new Set<string>(), sets: new Set<string>() };

  constructor({ table, comment, run = exec }: NftWriterOptions) {
    this.#table = table;
    this.#comment = comment;
    this.#run = run;
  }

  /**
   * Writes what differs from the last table, in one transaction; all of it where `full`, or where nothing is known. Resolves with the number
   * of rules that were written. Rejects when the kernel refuses, and nothing is changed then.
   */
  async apply(table: NftTable, full: boolean): Promise<number> {
    const isKnown = !full && this.#written !== undefined && !declaredOtherwise(this.#written, table);
    const before = isKnown ? this.#written : undefined;
    const { commands, rules } =
      before === undefined
        ? { commands: fullCommands(this.#table, table, this.#comment), rules: rulesIn(table) }
        : changeCommands(this.#table, before, table, await this.#formOfChanges());
    // Until it is known how this ends, nothing is known.
    this.#written = undefined;
    if (commands !== '') await this.#nft(commands);
    if (before === undefined) this.#forgetStale();
    else {
      const { chains, sets } = leftBehind(before, table);
      for (const name of chains) this.#stale.chains.add(name);
      for (const name of sets) this.#stale.sets.add(name);
    }
    this.#written = table;
    return rules;
  }

  /** What someone else has changed, in words; undefined where everything is as it was written. Removes what nothing leads to, too. */
  async damage(): Promise<string | undefined> {
    if (this.#written === undefined) return 'nothing is known of the rules';
    const removal = removalCommands(this.#table, this.#written, this.#stale.chains, this.#stale.sets);
    this.#forgetStale();
    if (removal !== '') await this.#nft(removal);
    const args = ['-j', 'list', 'table', ...this.#table.split(' ')];
    const listed = await this.#run('nft', args, { timeoutMs: LIMIT_MS, maxOutputBytes: MAX_LIST_BYTES });
    if (listed.code !== 0) return `table ${this.#table} is gone`;
    try {
      return firstDamage(this.#written, listed.stdout);
    } catch (error) {
      if (error instanceof SyntaxError) return `nft lists the table in another form: ${errorMessage(error)}`;
      throw error;
    }
  }

  async #formOfChanges(): Promise<NftForm> {
    if (this.#form !== undefined) return this.#form;
    const { stderr } = await this.#run('nft', ['-c', '-f', '-'], { stdin: DECLARATION_PROBE, timeoutMs: LIMIT_MS });
    // That the kernel refuses it, not nft's parser.
    this.#form = stderr.includes('Could not process') ? 'declaration' : 'command';
    return this.#form;
  }

  #forgetStale(): void {
    this.#stale.chains.clear();
    this.#stale.sets.clear();
  }

  #nft(commands: string): Promise<string> {
    return execOk('nft', ['-f', '-'], { stdin: commands, timeoutMs: LIMIT_MS }, this.#run);
  }
}

/** The comment of a table of this network namespace; '' where it has none, undefined where there is no such table. */
export async function tableComment(table: string, run: Exec = exec): Promise<string | undefined> {
  const { code, stdout } = await run('nft', ['-t', 'list', 'table', ...table.split(' ')], {
    timeoutMs: LIMIT_MS,
    maxOutputBytes: MAX_LIST_BYTES,
  });
  return code === 0 ? (/^\tcomment "([^"]+)"/m.exec(stdout)?.[1] ?? '') : undefined;
}

/** Takes a table away. Idempotent. */
export async function removeTable(table: string, run: Exec = exec): Promise<void> {
  // `delete` alone fails where it is not there.
  await execOk('nft', ['-f', '-'], { stdin: `add table ${table}\ndelete table ${table}\n` }, run);
}
