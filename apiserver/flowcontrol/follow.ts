// Keeps the flow control what the stored FlowSchemas and PriorityLevelConfigurations say, and writes the condition Dangling
// of the schemas, as kube-apiserver's configuration consumer does.

import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { isObject } from '../patch/json-value.ts';
import { applyObject } from '../registry/apply.ts';
import { apiVersionOf, type Registry, type WriteOptions } from '../registry/registry.ts';
import { statusRules } from '../registry/write.ts';
import { type Dangling, flowConfig } from './config.ts';
import type { FlowControl } from './flow-control.ts';

const GROUP = 'flowcontrol.apiserver.k8s.io';
const RESOURCES = ['flowschemas', 'prioritylevelconfigurations'];
/** Of one schema: several servers that see different levels must not write against each other for ever. */
const MAX_WRITES_A_MINUTE = 6;
const MINUTE_MS = 60_000;

const OPTIONS: WriteOptions = {
  caller: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  fieldManager: 'api-priority-and-fairness-config-consumer-v1',
  warn: () => undefined,
  internal: true,
};

export interface FollowParts {
  readonly registry: Registry;
  readonly flow: FlowControl;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

/** Follows the store from here on. Returns a function that stops it. */
export function followFlowConfig({ registry, flow, clock, log }: FollowParts): () => void {
  const writes = new Map<string, MonotonicMs[]>();
  let isPlanned = false;
  let isStopped = false;
  let running = Promise.resolve();

  /** Whether the schema may be written once more in this minute. */
  const mayWrite = (schema: string): boolean => {
    const now = clock.monotonic();
    const recent = (writes.get(schema) ?? []).filter((at) => elapsedMs(at, now) < MINUTE_MS);
    if (recent.length >= MAX_WRITES_A_MINUTE) {
      writes.set(schema, recent);
      return false;
    }
    writes.set(schema, [...recent, now]);
    return true;
  };

  const read = async (): Promise<void> => {
    isPlanned = false;
    if (isStopped) return;
    const [schemas = [], levels = []] = RESOURCES.map((plural) => registry.lookup.list(GROUP, plural));
    const config = flowConfig(schemas, levels);
    flow.configure(config);
    for (const dangling of config.dangling) {
      if (isStopped || !isStale(registry, dangling) || !mayWrite(dangling.schema)) continue;
      await writeCondition(registry, dangling, clock);
    }
  };
  const plan = (): void => {
    if (isPlanned || isStopped) return;
    isPlanned = true;
    running = running
      .then(read)
      .catch((error: unknown) => log(`priority and fairness: a condition was not written: ${errorMessage(error)}`));
  };

  const stops = RESOURCES.map((plural) => registry.store.subscribe(`${GROUP}/${plural}`, plan));
  plan();
  return () => {
    isStopped = true;
    for (const stop of stops) stop();
  };
}

function conditionOf(registry: Registry, schema: string): Readonly<Record<string, unknown>> | undefined {
  const status = registry.lookup.get(GROUP, 'flowschemas', '', schema)?.['status'];
  const conditions = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  return conditions.filter(isObject).find(({ type }) => type === 'Dangling');
}

function isStale(registry: Registry, { schema, status, reason, message }: Dangling): boolean {
  const condition = conditionOf(registry, schema);
  return condition?.['status'] !== status || condition['reason'] !== reason || condition['message'] !== message;
}

/** As an apply of the status, so that the other conditions stay. */
async function writeCondition(registry: Registry, dangling: Dangling, clock: Clock): Promise<void> {
  const { schema, status, reason, message } = dangling;
  const row = registry.rowOf(GROUP, 'flowschemas');
  await registry.store.commit(async () => {
    if (registry.find(row, '', schema) === undefined || !isStale(registry, dangling)) return;
    const condition = { type: 'Dangling', status, reason, message, lastTransitionTime: rfc3339(clock.now()) };
    const config = {
      apiVersion: apiVersionOf(row),
      kind: row.kind,
      metadata: { name: schema },
      status: { conditions: [condition] },
    };
    await applyObject(
      registry,
      row,
      '',
      schema,
      { config, force: true, mayCreate: () => undefined },
      OPTIONS,
      statusRules(row),
    );
  });
}
