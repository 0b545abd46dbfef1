// What nft is run with: the whole table first, then changes, in the form that this nft can read; and after a failure the whole table again.

import { describe, expect, it } from 'vitest';
import type { Exec } from '../../../lib/exec.ts';
import type { NftTable } from '../../../lib/nft-table.ts';
import { NftWriter } from '../../../lib/nft-writer.ts';

/** A chain with some rules, and a set of a type. */
const tableOf = (rules: readonly string[], type = 'set: type ipv4_addr;'): NftTable => ({
  chains: new Map([['one', { rules }]]),
  sets: new Map([['some', { type, elements: new Map() }]]),
});

/** nft that answers a check with `refusal`, and a write with what `fails` says. */
function fakeNft(refusal: string): {
  readonly run: Exec;
  readonly written: string[];
  readonly fail: { next: boolean };
} {
  const written: string[] = [];
  const fail = { next: false };
  const run: Exec = async (_file, args, options = {}) => {
    const isCheck = args.includes('-c');
    if (!isCheck) written.push(String(options.stdin));
    const code = (isCheck && refusal !== '') || (!isCheck && fail.next) ? 1 : 0;
    if (!isCheck) fail.next = false;
    return { code, signal: null, timedOut: false, stdout: '', stderr: isCheck ? refusal : '' };
  };
  return { run, written, fail };
}

const REFUSED = '/dev/stdin:2:39-45: Error: Could not process rule: No such file or directory\n';
const DECLARED = 'flush chain ip t one\nadd chain ip t one {\naccept\ndrop\n}\n';
const COMMANDED = 'flush chain ip t one\nadd rule ip t one accept\nadd rule ip t one drop\n';

describe('a change', () => {
  it.each([
    ['in declarations, where their rules are read', REFUSED, DECLARED],
    ['in commands, where this nft forgets the rules of a declaration', '', COMMANDED],
    ['in commands, where this nft cannot parse them', 'Error: syntax error, unexpected {\n', COMMANDED],
  ])('%s', async (_, refusal, expected) => {
    const { run, written } = fakeNft(refusal);
    const writer = new NftWriter({ table: 'ip t', comment: 'test', run });
    expect(await writer.apply(tableOf(['accept']), false)).toBe(1);
    expect(written[0]).toMatch(/^add table ip t\ndelete table ip t\n/);
    expect(await writer.apply(tableOf(['accept', 'drop']), false)).toBe(2);
    expect(written.slice(1)).toEqual([expected]);
    expect(await writer.apply(tableOf(['accept', 'drop']), false)).toBe(0);
    expect(written).toHaveLength(2);
  });

  it.each([
    ['after a failure', true, undefined],
    ['where a set has another type: the kernel refuses to change it', false, 'set: type ipv4_addr; timeout 5s;'],
  ])('of everything %s', async (_, fails, type) => {
    const { run, written, fail } = fakeNft(REFUSED);
    const writer = new NftWriter({ table: 'ip t', comment: 'test', run });
    await writer.apply(tableOf(['accept']), false);
    fail.next = fails;
    if (fails) await expect(writer.apply(tableOf(['drop']), false)).rejects.toThrow();
    await writer.apply(tableOf(['drop'], type), false);
    expect(written.at(-1)).toMatch(/^add table ip t\ndelete table ip t\n/);
  });
});
