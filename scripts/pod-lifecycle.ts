// Writes the part of docs/pod-lifecycle.md that is made from the code: the diagram and the table of the states of a pod.
// It changes nothing else of that page, and a unit test shows that the page is up to date.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { TRANSITIONS, type Transition } from '../agent/pods/pod-state.ts';

export const LIFECYCLE_PAGE = fileURLToPath(new URL('../docs/pod-lifecycle.md', import.meta.url));

const BEGIN = '<!-- made by scripts/pod-lifecycle.ts: begin -->';
const END = '<!-- made by scripts/pod-lifecycle.ts: end -->';

/** Mermaid's stateDiagram: one arrow for all the ways between two states. */
function diagram(transitions: readonly Transition[]): string {
  const arrows = new Map<string, string[]>();
  for (const { from, cause, to } of transitions) {
    const arrow = `${from === 'new' ? '[*]' : from} --> ${to}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), cause]);
  }
  const ways = [...arrows].map(([arrow, causes]) => `    ${arrow}: ${causes.join(', ')}`);
  return ['```mermaid', 'stateDiagram-v2', ...ways, '    removed --> [*]', '```'].join('\n');
}

function table(transitions: readonly Transition[]): string {
  const rows = transitions.map(({ from, cause, to, comment }) => `| ${from} | \`${cause}\` | ${to} | ${comment} |`);
  return ['| from | cause | to | when |', '|---|---|---|---|', ...rows].join('\n');
}

/** `page` with its made part as the code has it now. Throws where the page has no place for it. */
export function withLifecycle(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/pod-lifecycle.md has no lines "${BEGIN}" and "${END}"`);
  const made = `${BEGIN}\n\n${diagram(TRANSITIONS)}\n\n${table(TRANSITIONS)}\n\n`;
  return `${page.slice(0, begin)}${made}${page.slice(end)}`;
}

if (import.meta.main) writeFileSync(LIFECYCLE_PAGE, withLifecycle(readFileSync(LIFECYCLE_PAGE, 'utf8')));
