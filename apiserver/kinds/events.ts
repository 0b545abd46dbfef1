// Events, in their two versions. They are stored as core/v1; events.k8s.io/v1 is the same object under newer names.

import type { Event } from 'kubernetes-types/core/v1';
import type { Event as NewEvent } from 'kubernetes-types/events/v1';
import type { EpochMs } from '../../lib/clock.ts';
import { age, type Cell, NAME_COLUMN, text } from './columns.ts';
import { addErrors, invalid, required, syntax } from './field-errors.ts';
import { defineKind, type KindDefinition } from './metadata.ts';
import { qualifiedName } from './names.ts';
import type { FieldError, KubeObject, ResourceStrategy } from './resource.ts';
import { as, type Of } from './shapes.ts';

const of = (object: KubeObject) => as<Event>(object, 'Event');
const newOf = (object: KubeObject) => as<NewEvent>(object, 'Event');

/** Newer field name → where core/v1 keeps it. */
const NAMES = {
  note: 'message',
  regarding: 'involvedObject',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
} as const;

function renamed(object: KubeObject, apiVersion: string, names: ReadonlyMap<string, string>): KubeObject {
  const { metadata, kind, apiVersion: _, ...rest } = object;
  const fields = Object.fromEntries(Object.entries(rest).map(([name, value]) => [names.get(name) ?? name, value]));
  return { kind, apiVersion, metadata, ...fields };
}

const TO_STORED = new Map<string, string>(Object.entries(NAMES));
const FROM_STORED = new Map<string, string>(Object.entries(NAMES).map(([newer, older]) => [older, newer]));

/** `isNew`: as events.k8s.io/v1, whose rules are stricter. */
function validate(event: Of<Event>, isNew: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const target = event.involvedObject?.namespace ?? '';
  const own = event.metadata.namespace ?? '';
  const hasTime = event.eventTime !== undefined;
  // Events about what has no namespace go to "default".
  const homes = hasTime ? ['default', 'kube-system'] : ['', 'default'];
  if (target === '' ? !homes.includes(own) : !hasTime && target !== own) {
    errors.push(invalid('involvedObject.namespace', target, 'does not match event.namespace'));
  }
  if (hasTime) addErrors(errors, validateSource(event, isNew ? 'reportingController' : 'reportingComponent'));
  if (isNew && !['Normal', 'Warning'].includes(event.type ?? '')) {
    errors.push(invalid('type', '', `has invalid value: ${event.type ?? ''}`));
  }
  return errors;
}

function validateSource(event: Of<Event>, controllerField: string): FieldError[] {
  const { reportingComponent: controller = '', reportingInstance: instance = '', message = '' } = event;
  const errors: FieldError[] = [];
  if (controller === '') errors.push(required(controllerField));
  addErrors(errors, syntax(controllerField, controller, qualifiedName(controller)));
  if (instance === '') errors.push(required('reportingInstance'));
  if (instance.length > 128) errors.push(invalid('reportingInstance', '', 'can have at most 128 characters'));
  for (const field of ['action', 'reason'] as const) {
    const value = event[field] ?? '';
    if (value === '') errors.push(required(field));
    if (value.length > 128) errors.push(invalid(field, '', 'can have at most 128 characters'));
  }
  if (message.length > 1024) errors.push(invalid('message', '', 'can have at most 1024 characters'));
  return errors;
}

function lastSeen(event: Of<Event>, now: EpochMs): string {
  const series = event.series?.lastObservedTime;
  const time = series ?? event.lastTimestamp ?? event.firstTimestamp ?? event.eventTime;
  return age(time, now);
}

function firstSeen(event: Of<Event>, now: EpochMs): string {
  return age(event.firstTimestamp ?? event.eventTime, now);
}

/** "pod/web", as kubectl takes it. */
function objectColumn(event: Of<Event>): string {
  const { kind = '', name = '' } = event.involvedObject ?? {};
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`;
}

function sourceColumn(event: Of<Event>): string {
  const component = event.source?.component ?? event.reportingComponent ?? '';
  const host = event.source?.host ?? event.reportingInstance ?? '';
  if (component === '') return '<unknown>';
  return host === '' ? component : `${component}, ${host}`;
}

function cells(event: Of<Event>, now: EpochMs): readonly Cell[] {
  return [
    lastSeen(event, now),
    event.type ?? '',
    event.reason ?? '',
    objectColumn(event),
    event.involvedObject?.fieldPath ?? '',
    sourceColumn(event),
    (event.message ?? '').trim(),
    firstSeen(event, now),
    event.series?.count ?? event.count ?? 1,
    event.metadata.name ?? '',
  ];
}

const columns = [
  text('Last Seen', 'The time at which the most recent occurrence of this event was recorded.'),
  text('Type', 'Type of this event (Normal, Warning), new types could be added in the future.'),
  text('Reason', 'The machine-readable reason of the event.'),
  text('Object', 'The object that this event is about.'),
  text('Subobject', 'The part of the object that this event is about.', 1),
  text('Source', 'The component reporting this event.', 1),
  text('Message', 'A human-readable description of the status of this operation.'),
  text('First Seen', 'The time at which the event was first recorded.', 1),
  { name: 'Count', type: 'string' as const, description: 'The number of times this event has occurred.', priority: 1 },
  { ...NAME_COLUMN, priority: 1 },
];

/** Field selectors that both versions know, on the stored form. */
const SELECTABLE: Readonly<Record<string, (event: Of<Event>) => string>> = {
  'involvedObject.kind': (event) => event.involvedObject?.kind ?? '',
  'involvedObject.namespace': (event) => event.involvedObject?.namespace ?? '',
  'involvedObject.name': (event) => event.involvedObject?.name ?? '',
  'involvedObject.uid': (event) => event.involvedObject?.uid ?? '',
  'involvedObject.apiVersion': (event) => event.involvedObject?.apiVersion ?? '',
  'involvedObject.resourceVersion': (event) => event.involvedObject?.resourceVersion ?? '',
  'involvedObject.fieldPath': (event) => event.involvedObject?.fieldPath ?? '',
  reason: (event) => event.reason ?? '',
  reportingComponent: (event) => event.reportingComponent ?? '',
  source: (event) => event.source?.component ?? event.reportingComponent ?? '',
  type: (event) => event.type ?? '',
};

function strategyOn(
  stored: (object: KubeObject) => Of<Event>,
  names: ReadonlyMap<string, string>,
  isNew: boolean,
): ResourceStrategy {
  return {
    dependents: 'none',
    validateCreate: (object) => validate(stored(object), isNew),
    validateUpdate: (object) => validate(stored(object), isNew),
    selectableFields: Object.fromEntries(
      Object.entries(SELECTABLE).map(([path, read]) => {
        const [head = '', ...rest] = path.split('.');
        return [[names.get(head) ?? head, ...rest].join('.'), (object: KubeObject) => read(stored(object))];
      }),
    ),
    table: { columns, row: (object, now) => cells(stored(object), now) },
  };
}

const common: Omit<KindDefinition, 'group' | 'schema' | 'strategy'> = {
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  namespaced: true,
  subresources: [],
};

export const events = defineKind({
  ...common,
  group: '',
  schema: 'io.k8s.api.core.v1.Event',
  strategy: strategyOn(of, new Map(), false),
});

function toStored(object: KubeObject): KubeObject {
  return renamed(newOf(object), 'v1', TO_STORED);
}

export const eventsV1 = defineKind({
  ...common,
  group: 'events.k8s.io',
  schema: 'io.k8s.api.events.v1.Event',
  storedAs: {
    group: '',
    plural: 'events',
    toStored,
    fromStored: (object) => renamed(object, 'events.k8s.io/v1', FROM_STORED),
  },
  strategy: strategyOn((object) => of(toStored(object)), FROM_STORED, true),
});
