// The functions of the language that read observations: container(…), pod(…), node(…), events(…), spans(…), samples(…),
// history(…), step(…). All times are ms since the world was ready. Changes nothing.

import { getOwn } from '../../../lib/own-property.ts';
import type { ContainerObservation, ObjectObservation, SpanObservation } from '../observation.ts';
import { type FunctionDefinition, matchesText } from './functions.ts';
import type { ObservationIndex } from './index-of-observations.ts';
import { OperationError } from './operators.ts';
import { type Arguments, equal, fromJson, isList, RecordValue, record, typeOf, type Value } from './value.ts';

export const OBSERVED_FUNCTIONS: ReadonlyMap<string, FunctionDefinition> = new Map(
  (
    [
      { usage: 'container(name, pod=)', arity: [1, 1], named: ['pod'] },
      { usage: 'containers(pod=)', arity: [0, 0], named: ['pod'] },
      { usage: 'pod(name, namespace=)', arity: [1, 1], named: ['namespace'] },
      { usage: 'node(name)', arity: [0, 1] },
      { usage: 'object(kind, name, namespace=)', arity: [2, 2], named: ['namespace'] },
      { usage: 'history(kind, name, path, namespace=)', arity: [3, 3], named: ['namespace'] },
      { usage: 'events(reason, pod=, message=)', arity: [0, 1], named: ['pod', 'message'] },
      { usage: 'spans(name, kind=, pod=, outcome=)', arity: [0, 1], named: ['kind', 'pod', 'outcome'] },
      { usage: 'samples(series, label=value)', arity: [1, 1], named: ['*'] },
      { usage: 'step(name)', arity: [1, 1] },
      { usage: 'now()', arity: [0, 0] },
    ] satisfies FunctionDefinition[]
  ).map((definition) => [definition.usage.slice(0, definition.usage.indexOf('(')), definition]),
);

function textOf(value: Value | undefined, what: string): string {
  if (typeof value === 'string') return value;
  throw new OperationError(`${what} must be a text, not ${typeOf(value ?? null)}`);
}

function optionalText(value: Value | undefined, what: string): string | undefined {
  return value === undefined ? undefined : textOf(value, what);
}

function orNull(value: string | number | undefined): Value {
  return value ?? null;
}

/** Whether "namespace/name" is the pod that a pattern names, with or without its namespace. */
function isPod(pattern: string | undefined, pod: string): boolean {
  if (pattern === undefined) return true;
  return matchesText(pattern, pattern.includes('/') ? pod : pod.slice(pod.indexOf('/') + 1));
}

// ---------------------------------------------------------------- containers

function observedContainer(each: ContainerObservation): RecordValue {
  return record('container observation', {
    at: each.at,
    pod: each.pod,
    container: each.container,
    attempt: each.attempt,
    exitCode: orNull(each.exitCode),
    reason: orNull(each.reason),
    signal: orNull(each.signal),
  });
}

interface ContainerRun {
  readonly began: ContainerObservation;
  readonly exit: ContainerObservation | undefined;
}

/** Starts with their exits, of one or more pods. */
function runsOf(observations: readonly ContainerObservation[]): ContainerRun[] {
  const exits = observations.filter(({ change }) => change === 'exited');
  return observations
    .filter(({ change }) => change === 'started')
    .map((began) => ({
      began,
      exit: exits.find((exit) => exit.pod === began.pod && exit.attempt === began.attempt && exit.at >= began.at),
    }));
}

function containerRecord(title: string, select: () => readonly ContainerObservation[]): RecordValue {
  const times = (change: ContainerObservation['change']) => (): Value =>
    select().flatMap((each) => (each.change === change ? [each.at] : []));
  const exits = (): readonly ContainerObservation[] => select().filter(({ change }) => change === 'exited');
  return record(title, {
    created: times('created'),
    started: times('started'),
    exited: times('exited'),
    removed: times('removed'),
    starts: () =>
      select()
        .filter(({ change }) => change === 'started')
        .map(observedContainer),
    exits: () => exits().map(observedContainer),
    exitCodes: () => exits().map(({ exitCode }) => orNull(exitCode)),
    running: () => runsOf(select()).some(({ exit }) => exit === undefined),
    runs: () =>
      runsOf(select()).map(({ began, exit }) =>
        record('run', {
          at: began.at,
          pod: began.pod,
          container: began.container,
          attempt: began.attempt,
          started: began.at,
          exited: orNull(exit?.at),
          lasted: exit === undefined ? null : exit.at - began.at,
          exitCode: orNull(exit?.exitCode),
        }),
      ),
    waits: () => waitsOf(select()),
  });
}

/** From each exit to the next start of the same container. */
function waitsOf(observations: readonly ContainerObservation[]): Value {
  const runs = runsOf(observations);
  return runs.flatMap(({ began, exit }, index) => {
    if (exit === undefined) return [];
    const next = runs
      .slice(index + 1)
      .find((other) => other.began.pod === began.pod && other.began.container === began.container);
    return next === undefined ? [] : [next.began.at - exit.at];
  });
}

// ---------------------------------------------------------------- objects

/** "status.containerStatuses[0].restartCount" as steps; a name in [] chooses the item of a list with that name or type. */
export function parsePath(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  const pattern = /(?:^|\.)([^.[\]]+)|\[(?:(\d+)|([^\]]+))\]/gy;
  let place = 0;
  for (const match of path.matchAll(pattern)) {
    place = match.index + match[0].length;
    steps.push(match[2] === undefined ? (match[1] ?? match[3] ?? '') : Number(match[2]));
  }
  if (place !== path.length || steps.length === 0) {
    throw new OperationError(
      `"${path}" is no path of a field, as status.containerStatuses[0].ready or status.conditions[Ready].status`,
    );
  }
  return steps;
}

function isNamed(item: unknown, name: string): boolean {
  if (typeof item !== 'object' || item === null) return false;
  const fields: { readonly [key: string]: unknown } = { ...item };
  return fields['name'] === name || fields['type'] === name;
}

export function valueAt(object: unknown, steps: readonly (string | number)[]): unknown {
  let value = object;
  for (const step of steps) {
    if (Array.isArray(value)) {
      value = typeof step === 'number' ? value[step] : value.find((item: unknown) => isNamed(item, step));
    } else if (typeof value === 'object' && value !== null) {
      const fields: { readonly [key: string]: unknown } = { ...value };
      value = getOwn(fields, String(step));
    } else return undefined;
  }
  return value;
}

/** The values of a field over time, with when each began; a deleted object has none. */
function changesOf(
  versions: readonly ObjectObservation[],
  steps: readonly (string | number)[],
): readonly RecordValue[] {
  const changes: RecordValue[] = [];
  let before: Value | undefined;
  for (const { at, change, object } of versions) {
    const value = change === 'DELETED' ? null : fromJson(valueAt(object, steps));
    if (before !== undefined ? equal(value, before) : value === null) continue;
    before = value;
    changes.push(record('change', { at, value }));
  }
  return changes;
}

function latest(versions: readonly ObjectObservation[]): ObjectObservation | undefined {
  const last = versions.at(-1);
  return last?.change === 'DELETED' ? undefined : last;
}

const EMPTY_ARGUMENTS: Arguments = { positional: [], named: new Map() };

function conditionRecord(versions: readonly ObjectObservation[], type: string): RecordValue {
  const steps = ['status', 'conditions', type];
  const field = (name: string): Value => fromJson(valueAt(latest(versions)?.object, [...steps, name]));
  const changes = (): readonly RecordValue[] => changesOf(versions, [...steps, 'status']);
  const becameTimes = (status: string) => (): Value =>
    changes().flatMap((change) => (change.field('value') === status ? [change.field('at') ?? null] : []));
  return record(`condition ${type}`, {
    status: () => field('status'),
    reason: () => field('reason'),
    message: () => field('message'),
    since: () => changes().at(-1)?.field('at') ?? null,
    changes,
    becameTrue: becameTimes('True'),
    becameFalse: becameTimes('False'),
    becameUnknown: becameTimes('Unknown'),
  });
}

/** An object of the API over time: its own fields as they are now, and what has happened to it. */
function objectRecord(title: string, versions: readonly ObjectObservation[]): RecordValue {
  const changeTimes = (path: string): Value => changesOf(versions, parsePath(path));
  const methods = new Map<string, (given: Arguments) => Value>([
    ['condition', ({ positional }) => conditionRecord(versions, textOf(positional[0], 'the type of a condition'))],
    ['history', ({ positional }) => changeTimes(textOf(positional[0], 'the path'))],
  ]);
  const last = latest(versions);
  const fixed = new Map<string, () => Value>([
    ['exists', () => last !== undefined],
    ['created', () => orNull(versions[0]?.at)],
    [
      'deletionRequested',
      () => orNull(versions.find(({ object }) => valueAt(object, ['metadata', 'deletionTimestamp']) !== undefined)?.at),
    ],
    ['deleted', () => orNull(versions.findLast(({ change }) => change === 'DELETED')?.at)],
    ['versions', () => versions.length],
    ['phase', () => fromJson(valueAt(last?.object, ['status', 'phase']))],
    ['phases', () => changeTimes('status.phase')],
    ['restarts', () => restartsOf(last)],
  ]);
  const names = (): readonly string[] => [...fixed.keys(), ...Object.keys(last?.object ?? {})];
  const field = (name: string): Value | undefined => {
    const own = fixed.get(name);
    return own === undefined ? fromJson(getOwn({ ...last?.object }, name), name) : own();
  };
  return new RecordValue(title, names, field, methods);
}

/** Restarts of all containers, as `kubectl get pod` counts them. */
function restartsOf(version: ObjectObservation | undefined): Value {
  const statuses = valueAt(version?.object, ['status', 'containerStatuses']);
  if (!Array.isArray(statuses)) return null;
  return statuses.reduce((sum: number, each: unknown) => sum + Number(valueAt(each, ['restartCount']) ?? 0), 0);
}

// ---------------------------------------------------------------- events, spans, samples, steps

function eventRecords(index: ObservationIndex, reason: string | undefined, { named }: Arguments): Value {
  const pod = optionalText(named.get('pod'), 'pod');
  const message = optionalText(named.get('message'), 'message');
  const counts = new Map<string, number>();
  return index.ofKind('Event').flatMap(({ at, change, object }) => {
    if (change === 'DELETED') return [];
    const text = (path: string): string => String(valueAt(object, parsePath(path)) ?? '');
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const count = Number(valueAt(object, ['series', 'count']) ?? valueAt(object, ['count']) ?? 1);
    // A write that counts nothing more is no event.
    if (count <= (counts.get(key) ?? 0)) return [];
    counts.set(key, count);
    const about = `${text('involvedObject.namespace')}/${text('involvedObject.name')}`;
    if (reason !== undefined && !matchesText(reason, text('reason'))) return [];
    if (pod !== undefined && (text('involvedObject.kind') !== 'Pod' || !isPod(pod, about))) return [];
    if (message !== undefined && !matchesText(message, text('message'))) return [];
    return [
      record('event', {
        at,
        count,
        reason: text('reason'),
        message: text('message'),
        type: text('type'),
        kind: text('involvedObject.kind'),
        object: about,
      }),
    ];
  });
}

function spanRecord({ at, span }: SpanObservation): RecordValue {
  return record('span', {
    at,
    duration: span.durationMs,
    end: at + span.durationMs,
    name: span.name,
    kind: span.kind,
    outcome: span.outcome,
    error: orNull(span.error),
    cause: orNull(span.cause),
    pod: span.pod === undefined ? null : `${span.pod.namespace}/${span.pod.name}`,
    attributes: () => fromJson(span.attributes),
  });
}

function spanRecords(index: ObservationIndex, name: string, { named }: Arguments): Value {
  const kind = optionalText(named.get('kind'), 'kind');
  const pod = optionalText(named.get('pod'), 'pod');
  const outcome = optionalText(named.get('outcome'), 'outcome');
  const names = name.includes('*') ? index.spanNames().filter((each) => matchesText(name, each)) : [name];
  const found = names
    .flatMap((each) => index.spans(each))
    .filter(({ span }) => {
      if (kind !== undefined && span.kind !== kind) return false;
      if (outcome !== undefined && span.outcome !== outcome) return false;
      return pod === undefined || (span.pod !== undefined && isPod(pod, `${span.pod.namespace}/${span.pod.name}`));
    });
  return found.toSorted((a, b) => a.at - b.at).map(spanRecord);
}

function stepRecord(index: ObservationIndex, name: string): Value {
  const found = index.steps().filter(({ text }) => matchesText(name, text));
  const times = (phase: 'began' | 'ended') => (): Value =>
    found.flatMap((each) => (each.phase === phase ? [each.at] : []));
  const firstOf = (phase: 'began' | 'ended') => (): Value => orNull(found.find((each) => each.phase === phase)?.at);
  return record(`step ${name}`, {
    at: firstOf('began'),
    began: firstOf('began'),
    ended: firstOf('ended'),
    allBegan: times('began'),
    allEnded: times('ended'),
  });
}

/** Calls one of OBSERVED_FUNCTIONS; `elapsed`: ms since the world was ready. */
export function observe(index: ObservationIndex, elapsed: () => number, name: string, given: Arguments): Value {
  const { positional, named } = given;
  const argument = (place: number, what: string): string => textOf(positional[place], what);
  const pod = optionalText(named.get('pod'), 'pod');
  const namespace = optionalText(named.get('namespace'), 'namespace');
  switch (name) {
    case 'container': {
      const container = argument(0, 'the name of a container');
      return containerRecord(`container ${container}`, () =>
        index.container(container).filter((each) => isPod(pod, each.pod)),
      );
    }
    case 'containers':
      return containerRecord('containers', () =>
        index
          .containerNames()
          .flatMap((each) => index.container(each))
          .filter((each) => isPod(pod, each.pod))
          .toSorted((a, b) => a.at - b.at),
      );
    case 'pod': {
      const title = argument(0, 'the name of a pod');
      return objectRecord(`pod ${title}`, index.versions('Pod', title, namespace));
    }
    case 'node': {
      const chosen =
        positional.length === 0 ? index.ofKind('Node')[0]?.object.metadata.name : argument(0, 'the name of a node');
      return objectRecord('node', chosen === undefined ? [] : index.versions('Node', chosen, undefined));
    }
    case 'object': {
      const kind = argument(0, 'the kind');
      return objectRecord(kind, index.versions(kind, argument(1, 'the name'), namespace));
    }
    case 'history':
      return changesOf(
        index.versions(argument(0, 'the kind'), argument(1, 'the name'), namespace),
        parsePath(argument(2, 'the path')),
      );
    case 'events':
      return eventRecords(index, positional.length === 0 ? undefined : argument(0, 'the reason of events'), given);
    case 'spans':
      return spanRecords(index, positional.length === 0 ? '*' : argument(0, 'the name of spans'), given);
    case 'samples':
      return index.samples(argument(0, 'the name of a series')).flatMap(({ at, value, labels }) => {
        for (const [label, wanted] of named) {
          const found = getOwn(labels, label);
          if (found === undefined || !matchesText(textOf(wanted, label), found)) return [];
        }
        return [record('sample', { at, value, ...labels })];
      });
    case 'step':
      return stepRecord(index, argument(0, 'the name of a step'));
    case 'now':
      return elapsed();
    default:
      throw new OperationError(`there is no function ${name}`);
  }
}

/** A method of a value; a list's method is called on each of its items. */
export function callMethod(value: Value, name: string, given: Arguments = EMPTY_ARGUMENTS): Value {
  if (value === null) return null;
  if (isList(value)) return value.map((item) => callMethod(item, name, given));
  const method = value instanceof RecordValue ? value.method(name) : undefined;
  if (method === undefined) throw new OperationError(`${typeOf(value)} has no method ${name}()`);
  return method(given);
}
