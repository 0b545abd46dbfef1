// An explanation as one screen of text, and as the JSON of `-o json` (docs/explain.md has its shape). Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { elapsedMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { Cause, Explanation, FailedCall, NamedFinding, Target } from './finding.ts';
import { ago, duration } from './words.ts';

/** An answer that is longer than this is cut on the screen; JSON has all of it. Characters. */
const MAX_ANSWER = 400;
const MAX_OTHERS = 3;

export function targetName({ kind, namespace, name }: Target): string {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

function cut(text: string): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ');
  return line.length <= MAX_ANSWER ? line : `${line.slice(0, MAX_ANSWER)} …`;
}

/** Words at most `width` wide, continued below `indent`. */
function wrap(text: string, indent: string, first: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = first;
  let empty = true;
  for (const word of text.split(' ')) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  return [...lines, line];
}

function timing({ since, at, count = 1, next }: Cause, now: EpochMs): string {
  const parts: string[] = [];
  const age = since === undefined ? '' : duration(elapsedMs(since, now));
  if (count > 1) parts.push(`${count} times${age === '' ? '' : ` in ${age}`}`);
  else if (age !== '') parts.push(`for ${age}`);
  if (at !== undefined) parts.push(ago(at, now));
  if (next !== undefined) {
    const left = elapsedMs(now, next);
    parts.push(left > 0 ? `tried again in ${duration(left)}` : 'tried again now');
  }
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

function callLines({ name, to, with: input, answer }: FailedCall, indent: string, width: number): readonly string[] {
  const what = `call:   ${name} → ${to}${input === undefined ? '' : `, with ${input}`}`;
  return [
    ...wrap(what, `${indent}        `, indent, width),
    ...(answer === undefined ? [] : wrap(`answer: ${cut(answer)}`, `${indent}        `, indent, width)),
  ];
}

function chainLines(chain: readonly Cause[], now: EpochMs, width: number): readonly string[] {
  return chain.flatMap((cause, depth) => {
    const indent = '   '.repeat(depth);
    const marker = depth === 0 ? '  ' : `  ${'   '.repeat(depth - 1)}└─ `;
    return [
      ...wrap(`${cause.text}${timing(cause, now)}`, `  ${indent}`, marker, width),
      ...(cause.call === undefined ? [] : callLines(cause.call, `  ${indent}`, width)),
    ];
  });
}

function findingLines({ chain, details = [] }: NamedFinding, now: EpochMs, width: number): readonly string[] {
  return [
    ...(chain.length === 0 ? [] : ['', 'Why', ...chainLines(chain, now, width)]),
    ...details.flatMap(({ title, lines }) => ['', title, ...lines.map((line) => `  | ${line}`)]),
  ];
}

/** `width`: of the terminal. */
export function renderText(explanation: Explanation, width = 100): string {
  const { target, finding, others, fine, gaps, at } = explanation;
  const commands = [...finding.commands, ...others.slice(0, MAX_OTHERS).flatMap((other) => other.commands.slice(0, 1))];
  const unique = commands.filter((each, index) => commands.findIndex((c) => c.command === each.command) === index);
  const lines = [
    ...wrap(`${targetName(target)}: ${finding.verdict}.`, '  ', '', width),
    ...findingLines(finding, at, width),
    ...(others.length === 0 ? [] : ['', 'Also']),
    ...others.slice(0, MAX_OTHERS).flatMap(({ verdict }) => wrap(`${verdict}.`, '    ', '  - ', width)),
    ...(others.length <= MAX_OTHERS ? [] : [`  - and ${others.length - MAX_OTHERS} more, which -o json has`]),
    ...(fine.length === 0 ? [] : ['', 'Fine already']),
    ...fine.flatMap((text) => wrap(text, '    ', '  - ', width)),
    ...(unique.length === 0 ? [] : ['', 'Try']),
    ...unique.flatMap(({ command, why }) => [...wrap(why, '  # ', '  # ', width), `  ${command}`]),
    ...(gaps.length === 0 ? [] : ['', 'Not looked at']),
    ...gaps.flatMap(({ what, why }) => wrap(`${what}: ${cut(why)}`, '    ', '  - ', width)),
  ];
  return `${lines.join('\n')}\n`;
}

function causeJson({ text, call, since, at, count, next }: Cause): object {
  return {
    text,
    ...(call === undefined ? {} : { call }),
    ...(since === undefined ? {} : { since: rfc3339(since) }),
    ...(at === undefined ? {} : { at: rfc3339(at) }),
    ...(count === undefined ? {} : { count }),
    ...(next === undefined ? {} : { nextTry: rfc3339(next) }),
  };
}

function findingJson({ rule, state, verdict, chain, commands, details = [] }: NamedFinding): object {
  return { rule, state, verdict, chain: chain.map(causeJson), commands, details };
}

export function explanationJson({ target, at, finding, others, fine, gaps }: Explanation): object {
  return {
    kind: target.kind,
    ...(target.namespace === '' ? {} : { namespace: target.namespace }),
    name: target.name,
    at: rfc3339(at),
    ...findingJson(finding),
    alsoFound: others.map(findingJson),
    fine,
    notLookedAt: gaps,
  };
}
