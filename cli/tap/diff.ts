// Compares two recordings: calls that do something, pod by pod, in their order and field by field; calls that only look, by
// how often they are made. Pure; diff-report.ts prints what is found.

import { type Aligned, align } from './align.ts';
import { type DecodedCall, decodeCall } from './decoded.ts';
import { differences, type FieldDifference, shapeOf } from './field-diff.ts';
import { type IgnoreRules, isIgnored, NOTHING_IGNORED } from './ignore.ts';
import { maskMessage, maskText, replaceAll } from './mask.ts';
import { Names } from './names.ts';
import { compareRates, type Rate } from './rates.ts';
import type { RecordedCall, RecordingInfo } from './recording.ts';
import type { Schema } from './schema.ts';
import type { JsonMessage } from './wire.ts';

export interface LoadedRecording {
  readonly info: RecordingInfo;
  readonly calls: readonly RecordedCall[];
}

/** Calls that are about no pod. */
export const NODE = '(node)';

/** A call as it is compared. */
export interface MaskedCall {
  readonly pod: string;
  readonly container: string | undefined;
  readonly method: string;
  readonly request: JsonMessage;
  readonly responses: readonly JsonMessage[];
  readonly status: string;
  readonly message: string;
}

export type CallDifference =
  /** In the same place of both; `what` is "request", "response" or "end". */
  | {
      readonly kind: 'fields';
      readonly call: MaskedCall;
      readonly what: string;
      readonly fields: readonly FieldDifference[];
    }
  | { readonly kind: 'only'; readonly in: 'A' | 'B'; readonly call: MaskedCall }
  /** Both have it, in another order. */
  | { readonly kind: 'order'; readonly call: MaskedCall };

export interface PodDiff {
  readonly pod: string;
  /** Compared calls: those that do something. */
  readonly calls: readonly [a: number, b: number];
  readonly differences: readonly CallDifference[];
}

/** A field that a method's answers have in one recording alone: it may depend on when the call was made. */
export interface ShapeDifference {
  readonly method: string;
  readonly onlyA: readonly string[];
  readonly onlyB: readonly string[];
}

export interface RecordingDiff {
  readonly pods: readonly PodDiff[];
  readonly rates: readonly Rate[];
  /** Reported, and not counted as a difference. */
  readonly answers: readonly ShapeDifference[];
  readonly count: number;
}

/** Calls that change nothing, and are made again and again. */
export function isRead(method: string): boolean {
  return (
    /^(List|Get|Stream)/.test(method) ||
    /(Status|Stats)$/.test(method) ||
    method === 'ImageFsInfo' ||
    method === 'Version' ||
    // Of a service that no .proto file describes nothing is known.
    method.includes('/')
  );
}

/** Probes: their number depends on how long was recorded, their content does not. */
const isRepeated = (method: string): boolean => method === 'ExecSync';

interface Side {
  /** Calls that do something, by pod. */
  readonly acts: ReadonlyMap<string, readonly MaskedCall[]>;
  readonly reads: ReadonlyMap<string, number>;
  readonly shapes: ReadonlyMap<string, ReadonlySet<string>>;
  readonly seconds: number;
}

function masked(call: DecodedCall, names: Names, rules: IgnoreRules): MaskedCall {
  const mask = (message: JsonMessage): JsonMessage => maskMessage(message, names, rules.replacements);
  return {
    pod: replaceAll(call.subject.pod ?? NODE, rules.replacements),
    container: call.subject.container,
    method: call.name,
    request: mask(call.requests[0]?.message ?? {}),
    responses: call.responses.map(({ message }) => mask(message)),
    status: call.status,
    message: maskText(call.call.end?.message ?? '', undefined, rules.replacements),
  };
}

/** The method with the fields that are asked with: "ListContainers(filter.state.state)". */
function readKey(call: MaskedCall): string {
  const fields = [...new Set(shapeOf(call.request))].filter((field) => field !== '').sort();
  return fields.length === 0 ? call.method : `${call.method}(${fields.join(', ')})`;
}

function sideOf({ calls, info }: LoadedRecording, schema: Schema, rules: IgnoreRules): Side {
  const names = new Names();
  // Names are learned as calls end; the comparison is in the order in which they began.
  const byEnd = [...calls].sort((a, b) => (a.end?.at ?? Infinity) - (b.end?.at ?? Infinity));
  const decoded = byEnd
    .map((call) => decodeCall(call, schema, names))
    .sort((a, b) => a.call.begin - b.call.begin || a.call.id - b.call.id);
  const acts = new Map<string, MaskedCall[]>();
  const reads = new Map<string, number>();
  const shapes = new Map<string, Set<string>>();
  const repeated = new Set<string>();
  for (const each of decoded) {
    // By now all names are known: a call may have been made before its pod was first listed.
    const subject = { ...each.subject, ...names.subject(each.requests[0]?.message) };
    const call = masked({ ...each, subject }, names, rules);
    // What a stream tells depends on when it was opened.
    if (isRead(call.method) || each.type?.responseStream === true) {
      const key = readKey(call);
      reads.set(key, (reads.get(key) ?? 0) + 1);
      const shape = shapes.get(call.method) ?? new Set<string>();
      shapes.set(call.method, shape);
      for (const response of call.responses) for (const field of shapeOf(response)) shape.add(field);
      continue;
    }
    const identity = JSON.stringify([call.pod, call.method, call.container, call.request]);
    if (isRepeated(call.method) && repeated.has(identity)) continue;
    repeated.add(identity);
    const list = acts.get(call.pod) ?? [];
    acts.set(call.pod, list);
    list.push(call);
  }
  return { acts, reads, shapes, seconds: info.durationMs / 1000 };
}

function endDifferences(a: MaskedCall, b: MaskedCall): FieldDifference[] {
  // A call that a recording cut off says nothing.
  if (a.status === 'open' || b.status === 'open') return [];
  return differences({ status: a.status, message: a.message }, { status: b.status, message: b.message });
}

function compareCalls(a: MaskedCall, b: MaskedCall, rules: IgnoreRules): CallDifference[] {
  const parts: readonly (readonly [string, readonly FieldDifference[]])[] = [
    ['request', differences(a.request, b.request)],
    // What a probe prints is the container's affair.
    ['response', isRepeated(a.method) ? [] : differences(a.responses[0] ?? {}, b.responses[0] ?? {})],
    ['end', isRepeated(a.method) ? [] : endDifferences(a, b)],
  ];
  return parts.flatMap(([what, all]) => {
    const fields = all.filter(({ path }) => !isIgnored(rules.rules, a.method, a.pod, path));
    return fields.length === 0 ? [] : [{ kind: 'fields' as const, call: a, what, fields }];
  });
}

const keyOf = (call: MaskedCall): string => `${call.method} ${call.container ?? ''}`;

/** Calls that each side has by itself are the same call in another place where both have one of the same key. */
function compareAligned(aligned: readonly Aligned<MaskedCall>[], rules: IgnoreRules): CallDifference[] {
  const unpaired = new Map<string, MaskedCall[]>();
  for (const entry of aligned) {
    if (entry.kind !== 'b') continue;
    const list = unpaired.get(keyOf(entry.b)) ?? [];
    unpaired.set(keyOf(entry.b), list);
    list.push(entry.b);
  }
  const moved = new Set<MaskedCall>();
  const found: CallDifference[] = [];
  for (const entry of aligned) {
    if (entry.kind === 'both') found.push(...compareCalls(entry.a, entry.b, rules));
    else if (entry.kind === 'a') {
      const other = unpaired.get(keyOf(entry.a))?.shift();
      if (other === undefined) found.push({ kind: 'only', in: 'A', call: entry.a });
      else {
        moved.add(other);
        found.push({ kind: 'order', call: entry.a }, ...compareCalls(entry.a, other, rules));
      }
    }
  }
  for (const entry of aligned)
    if (entry.kind === 'b' && !moved.has(entry.b)) found.push({ kind: 'only', in: 'B', call: entry.b });
  return found.filter(
    (each) => each.kind === 'fields' || !isIgnored(rules.rules, each.call.method, each.call.pod, undefined),
  );
}

function compareShapes(a: Side, b: Side): ShapeDifference[] {
  return [...a.shapes].flatMap(([method, fieldsA]) => {
    const fieldsB = b.shapes.get(method);
    if (fieldsB === undefined || fieldsA.size === 0 || fieldsB.size === 0) return [];
    const onlyA = [...fieldsA].filter((field) => !fieldsB.has(field)).sort();
    const onlyB = [...fieldsB].filter((field) => !fieldsA.has(field)).sort();
    return onlyA.length + onlyB.length === 0 ? [] : [{ method, onlyA, onlyB }];
  });
}

export function compareRecordings(
  a: LoadedRecording,
  b: LoadedRecording,
  schema: Schema,
  rules: IgnoreRules = NOTHING_IGNORED,
): RecordingDiff {
  const [sideA, sideB] = [sideOf(a, schema, rules), sideOf(b, schema, rules)];
  const pods = [...new Set([...sideA.acts.keys(), ...sideB.acts.keys()])].sort().map((pod): PodDiff => {
    const [callsA, callsB] = [sideA.acts.get(pod) ?? [], sideB.acts.get(pod) ?? []];
    return {
      pod,
      calls: [callsA.length, callsB.length],
      differences: compareAligned(align(callsA, callsB, keyOf), rules),
    };
  });
  const rates = compareRates(sideA.reads, sideB.reads, [sideA.seconds, sideB.seconds]).filter(
    ({ method }) => !isIgnored(rules.rules, method.replace(/\(.*$/, ''), '', undefined),
  );
  const differing = rates.filter(({ verdict }) => verdict !== 'equal' && verdict !== 'too few calls to say');
  return {
    pods,
    rates,
    answers: compareShapes(sideA, sideB),
    count: differing.length + pods.reduce((sum, pod) => sum + pod.differences.length, 0),
  };
}
