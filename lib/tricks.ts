// The shortcuts for speed or memory that make the code harder to read, each behind a switch, so that what it saves can be
// measured again: docs/performance.md has the figures. NODELET_TRICKS turns them off: "none", or names to leave out
// ("-exec-helper,-perl-shim"), or "none,exec-helper" for one alone.
// bin/nodelet reads those of the process itself (v8-…, malloc); `imports` is of every command.

import { UserError } from './errors.ts';

/** The environment variable that selects them. */
export const TRICKS_VARIABLE = 'NODELET_TRICKS';

export const TRICKS = [
  'exec-helper',
  'perl-shim',
  'v8-size',
  'v8-jit',
  'v8-idle',
  'v8-young',
  'malloc',
  'imports',
] as const;
export type Trick = (typeof TRICKS)[number];

const isTrick = (name: string): name is Trick => TRICKS.some((trick) => trick === name);

/** The tricks that NODELET_TRICKS switches on. Throws UserError for a name that is none. Pure. */
export function parseTricks(text: string | undefined): ReadonlySet<Trick> {
  const words = (text ?? '').split(',').filter((word) => word !== '');
  const on = new Set<Trick>(words[0] === 'none' ? [] : TRICKS);
  for (const word of words[0] === 'none' ? words.slice(1) : words) {
    const name = word.replace(/^-/, '');
    if (!isTrick(name)) throw new UserError(`NODELET_TRICKS: no trick "${name}"; there are ${TRICKS.join(', ')}`);
    if (word.startsWith('-')) on.delete(name);
    else on.add(name);
  }
  return on;
}
