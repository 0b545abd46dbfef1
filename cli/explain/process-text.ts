// A process of a container in words: what it does, what it waits in, what SIGTERM does to it. Pure.

import type { ProcessFact } from './facts.ts';

const STATES: ReadonlyMap<string, string> = new Map([
  ['R', 'running'],
  ['S', 'sleeping'],
  ['D', 'waiting for a device or a file system, and cannot be killed meanwhile'],
  ['T', 'stopped by a signal'],
  ['t', 'stopped by a debugger'],
  ['Z', 'ended, but its parent has not noticed'],
  ['I', 'idle'],
]);

const TERM: Readonly<Record<ProcessFact['term'], string>> = {
  ignored: 'ignores SIGTERM',
  handled: 'handles SIGTERM by itself',
  default: 'has no handler for SIGTERM, which the first process of a container then does not notice',
};

export function processText({ pid, command, state, waitsIn, term }: ProcessFact): string {
  const where = waitsIn === '' ? '' : ` in ${waitsIn}`;
  return `process ${pid} (${command}) is ${STATES.get(state) ?? state}${where} and ${TERM[term]}`;
}
