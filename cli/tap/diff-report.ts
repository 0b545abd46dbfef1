// Prints what compareRecordings has found. Pure: lines out, nothing decided.

import type { CallDifference, MaskedCall, PodDiff, RecordingDiff } from './diff.ts';
import type { Rate } from './rates.ts';
import type { RecordingInfo } from './recording.ts';
import type { Json } from './wire.ts';

const nameOf = (call: MaskedCall): string =>
  call.container === undefined ? call.method : `${call.method} ${call.container}`;

const printed = (value: Json | undefined): string => (value === undefined ? '(absent)' : JSON.stringify(value));

function lines(difference: CallDifference): string[] {
  const name = nameOf(difference.call);
  if (difference.kind === 'only') return [`  ${name}: only in ${difference.in}`];
  if (difference.kind === 'order') return [`  ${name}: at another place in the order`];
  return [
    `  ${name}: ${difference.what}`,
    ...difference.fields.flatMap(({ path, a, b }) => [
      `    ${path === '' ? '(whole message)' : path}`,
      `      A ${printed(a)}`,
      `      B ${printed(b)}`,
    ]),
  ];
}

function podLines(pod: PodDiff): string[] {
  const [a, b] = pod.calls;
  const count = a === b ? `${a} calls` : `${a} calls in A, ${b} in B`;
  if (pod.differences.length === 0) return [`${pod.pod}: equal, ${count}`];
  if (a === 0 || b === 0) return [`${pod.pod}: only in ${a === 0 ? 'B' : 'A'}, ${Math.max(a, b)} calls`];
  return [`${pod.pod}: ${count}`, ...pod.differences.flatMap(lines)];
}

function rateLines(rates: readonly Rate[]): string[] {
  const width = Math.max(...rates.map(({ method }) => method.length), 0);
  return rates.map(({ method, perSecond: [a, b], verdict }) => {
    const shown = verdict === 'equal' ? '' : `  ${verdict}`;
    return `  ${method.padEnd(width)}  ${a.toFixed(2).padStart(8)}  ${b.toFixed(2).padStart(8)}${shown}`;
  });
}

export function printDiff(
  diff: RecordingDiff,
  a: { readonly path: string; readonly info: RecordingInfo; readonly calls: number },
  b: { readonly path: string; readonly info: RecordingInfo; readonly calls: number },
): string[] {
  const head = ([name, { path, info, calls }]: readonly [string, typeof a]): string =>
    `${name}  ${path}: ${calls} calls in ${(info.durationMs / 1000).toFixed(1)} s, to ${info.to}`;
  return [
    head(['A', a]),
    head(['B', b]),
    '',
    ...diff.pods.flatMap(podLines),
    '',
    'compared, calls a second in A and B',
    ...rateLines(diff.rates),
    ...(diff.answers.length === 0 ? [] : ['', 'fields answered in one alone (may depend on the moment; not counted)']),
    ...diff.answers.map(({ method, onlyA, onlyB }) => {
      const parts = [...onlyA.map((field) => `-${field}`), ...onlyB.map((field) => `+${field}`)];
      return `  ${method}: ${parts.join(' ')}`;
    }),
    '',
    diff.count === 0 ? 'equal' : diff.count === 1 ? '1 difference' : `${diff.count} differences`,
  ];
}
