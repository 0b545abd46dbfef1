// Follows the definitions in the store: accepts their names, serves their rows, and empties a definition that is deleted of
// its objects before it goes. Runs inside the server, behind the writes that it follows.

import type { EpochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { nextTurn } from '../../lib/turns.ts';
import { StatusError } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { deleteStored } from '../registry/delete.ts';
import type { Registry } from '../registry/registry.ts';
import { mutateStored } from '../registry/write.ts';
import { type ConversionParts, ConvertedObjects, VersionConverter } from './conversion.ts';
import { acceptNames } from './names.ts';
import { rowsOf } from './rows.ts';
import {
  CLEANUP_FINALIZER,
  type Condition,
  condition,
  type Definition,
  type DefinitionStatus,
  definitionOf,
  isTrue,
} from './types.ts';

export const DEFINITIONS = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' } as const;
const RESOURCE = `${DEFINITIONS.group}/${DEFINITIONS.plural}`;
/** Some milliseconds' work. */
const DELETIONS_PER_TURN = 32;

/** Sets one condition; its time changes with its status. Pure. */
export function withCondition(
  status: DefinitionStatus,
  wanted: Omit<Condition, 'lastTransitionTime'>,
  now: EpochMs,
): DefinitionStatus {
  const before = status.conditions ?? [];
  const old = before.find((one) => one.type === wanted.type);
  const lastTransitionTime = old?.status === wanted.status ? old.lastTransitionTime : rfc3339(now);
  const condition = { ...wanted, lastTransitionTime };
  const conditions = old === undefined ? [...before, condition] : before.map((one) => (one === old ? condition : one));
  return { ...status, conditions };
}

export class DefinitionController {
  readonly #registry: Registry;
  readonly #log: (line: string) => void;
  /** What the rows of a definition were made from. */
  readonly #served = new Map<string, string>();
  readonly #pending = new Set<string>();
  /** Definitions whose objects are being deleted → ends the wait for their objects' last finalizers. */
  readonly #emptying = new Map<string, () => void>();
  readonly #conversions: ConversionParts;
  readonly #converted = new ConvertedObjects();
  #unsubscribe: (() => void) | undefined;
  #isRunning = false;
  #isStopped = false;

  constructor(registry: Registry, log: (line: string) => void, conversions: ConversionParts) {
    this.#registry = registry;
    this.#log = log;
    this.#conversions = conversions;
  }

  /** Serves what is stored, then follows changes. */
  start(): void {
    const { store } = this.#registry;
    if (!this.#registry.hasRow(DEFINITIONS.group, DEFINITIONS.plural)) return;
    this.#unsubscribe = store.subscribe(RESOURCE, ({ record }) => this.#wake(record.name));
    for (const { name } of store.scan(RESOURCE)) {
      const definition = this.#definition(name);
      if (definition !== undefined) this.#serve(name, definition);
      this.#wake(name);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe?.();
    for (const end of this.#emptying.values()) end();
    this.#emptying.clear();
    this.#pending.clear();
  }

  /** A write is not followed by others in its own turn: watchers would see them in the wrong order. */
  #wake(name: string): void {
    if (this.#isStopped) return;
    this.#pending.add(name);
    if (this.#isRunning) return;
    this.#isRunning = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    for (let [name] = this.#pending; name !== undefined; [name] = this.#pending) {
      this.#pending.delete(name);
      try {
        await this.#reconcile(name);
      } catch (error) {
        if (!this.#isStopped) this.#log(`CustomResourceDefinition ${name}: ${errorMessage(error)}`);
      }
    }
    this.#isRunning = false;
  }

  #row(): ResourceKind {
    return this.#registry.rowOf(DEFINITIONS.group, DEFINITIONS.plural);
  }

  #definition(name: string): Definition | undefined {
    const stored = this.#registry.find(this.#row(), '', name);
    return stored === undefined ? undefined : definitionOf(this.#registry.parse(this.#row(), stored));
  }

  async #reconcile(name: string): Promise<void> {
    await this.#registry.store.commit(() => this.#setStatus(name));
    if (this.#isStopped) return;
    const definition = this.#definition(name);
    if (definition === undefined) {
      this.#registry.rows.replace(name, []);
      this.#served.delete(name);
      // Names that it had are free for others.
      for (const other of this.#registry.store.scan(RESOURCE)) {
        const waits = this.#definition(other.name);
        if (waits !== undefined && !isTrue(waits, 'NamesAccepted')) this.#wake(other.name);
      }
      return;
    }
    this.#serve(name, definition);
    if (definition.metadata.deletionTimestamp === undefined) return;
    if (!definition.metadata.finalizers?.includes(CLEANUP_FINALIZER)) return;
    if (!this.#emptying.has(name)) void this.#empty(name, definition);
  }

  #setStatus(name: string): void {
    const definition = this.#definition(name);
    if (definition === undefined) return;
    const now = this.#registry.clock.now();
    const others = Array.from(this.#registry.store.scan(RESOURCE), (stored) =>
      definitionOf(this.#registry.parse(this.#row(), stored)),
    ).filter(({ metadata }) => metadata.name !== name);
    let status = acceptNames(definition, others, now);
    if (definition.metadata.deletionTimestamp !== undefined && condition(definition, 'Terminating') === undefined) {
      const message = 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon';
      const terminating = { type: 'Terminating', status: 'True', reason: 'InstanceDeletionPending', message } as const;
      status = withCondition(status, terminating, now);
    }
    if (sameJson(status, definition.status ?? {})) return;
    const stored = this.#registry.find(this.#row(), '', name);
    if (stored === undefined) return;
    mutateStored(this.#registry, this.#row(), stored, false, (object) => {
      object['status'] = status;
    });
  }

  #serve(name: string, definition: Definition): void {
    const { spec, status, metadata } = definition;
    const from = JSON.stringify([spec, status?.acceptedNames, status?.storedVersions, metadata.deletionTimestamp]);
    if (this.#served.get(name) === from) return;
    this.#registry.rows.replace(name, rowsOf(definition, this.#converter(name, definition)));
    this.#served.set(name, from);
  }

  #converter(name: string, { spec, metadata }: Definition): VersionConverter | undefined {
    const { strategy, webhook } = spec?.conversion ?? {};
    if (strategy !== 'Webhook') return undefined;
    return new VersionConverter(name, metadata.uid ?? '', webhook ?? {}, this.#conversions, this.#converted);
  }

  async #empty(name: string, definition: Definition): Promise<void> {
    const registry = this.#registry;
    const resource = `${definition.spec?.group ?? ''}/${definition.status?.acceptedNames?.plural ?? ''}`;
    let wake: () => void = () => undefined;
    const end = registry.store.subscribe(resource, ({ record }) => {
      if (record.type === 'DELETED') wake();
    });
    let isEnded = false;
    this.#emptying.set(name, () => {
      isEnded = true;
      end();
      wake();
    });
    try {
      await this.#deleteAll(resource);
      for (let left = this.#count(resource); left > 0 && !isEnded; left = this.#count(resource)) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        await promise;
      }
      if (!isEnded) await registry.store.commit(() => this.#finish(name));
    } catch (error) {
      if (!isEnded)
        this.#log(`CustomResourceDefinition ${name}: its objects cannot be deleted: ${errorMessage(error)}`);
    } finally {
      end();
      this.#emptying.delete(name);
    }
  }

  #count(resource: string): number {
    for (const _ of this.#registry.store.scan(resource)) return 1;
    return 0;
  }

  async #deleteAll(resource: string): Promise<void> {
    const [group = '', plural = ''] = resource.split('/');
    const row = this.#registry.rows.preferred(group, plural);
    if (row === undefined) return;
    const keys = Array.from(this.#registry.store.scan(resource), ({ namespace, name }) => ({ namespace, name }));
    for (const [index, { namespace, name }] of keys.entries()) {
      if (index % DELETIONS_PER_TURN === DELETIONS_PER_TURN - 1) await nextTurn();
      try {
        await this.#registry.store.commit(() => {
          const stored = this.#registry.find(row, namespace, name);
          if (stored !== undefined) deleteStored(this.#registry, row, stored, { dryRun: false });
        });
      } catch (error) {
        // The others are deleted all the same.
        if (!(error instanceof StatusError)) throw error;
        this.#log(`${resource} ${namespace}/${name}: ${error.message}`);
      }
    }
  }

  #finish(name: string): void {
    const row = this.#row();
    const stored = this.#registry.find(row, '', name);
    if (stored === undefined) return;
    mutateStored(this.#registry, row, stored, false, (object) => {
      const definition = definitionOf(object);
      const message = 'removed all instances';
      const done = { type: 'Terminating', status: 'False', reason: 'InstanceDeletionCompleted', message } as const;
      definition.status = withCondition(definition.status ?? {}, done, this.#registry.clock.now());
      const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== CLEANUP_FINALIZER);
      if (finalizers.length > 0) object.metadata.finalizers = finalizers;
      else delete object.metadata.finalizers;
    });
  }
}
