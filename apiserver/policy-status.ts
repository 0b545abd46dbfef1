// The status of ValidatingAdmissionPolicies: the generation that was checked, and what is wrong with its expressions by the schemas of
// the kinds that it matches (admission/policies/type-checking.ts). Upstream this is a controller of kube-controller-manager,
// validatingadmissionpolicy-status-controller; here the server does it, which has the schemas and the language.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorMessage } from '../lib/errors.ts';
import { builtInSchema, customSchema } from './admission/policies/kind-schemas.ts';
import { type Kind, type KindSource, typeWarnings } from './admission/policies/type-checking.ts';
import type { JsonSchema } from './crd/json-schema.ts';
import { policyOf } from './kinds/admission-policies.ts';
import type { KubeObject, ResourceKind } from './kinds/resource.ts';
import { applyObject } from './registry/apply.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { statusRules } from './registry/write.ts';

const GROUP = 'admissionregistration.k8s.io';
const PLURAL = 'validatingadmissionpolicies';
/** Upstream's name of the field manager. */
const MANAGER = 'validatingadmissionpolicy-status';

const OPTIONS: WriteOptions = {
  caller: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  fieldManager: MANAGER,
  warn: () => undefined,
};

/** The kinds that this server serves. */
export function kindSource(rows: () => Iterable<ResourceKind>): KindSource {
  const find = (is: (row: ResourceKind) => boolean): ResourceKind | undefined => [...rows()].find(is);
  return {
    kindOf: (group, version, resource) => {
      const row = find((one) => one.group === group && one.version === version && one.plural === resource);
      return row === undefined ? undefined : { group, version, kind: row.kind };
    },
    schemaOf: ({ group, version, kind }: Kind): JsonSchema | undefined => {
      const row = find((one) => one.group === group && one.version === version && one.kind === kind);
      if (row === undefined) return undefined;
      return row.custom === undefined ? builtInSchema(row.schema) : customSchema(row.custom.schema);
    },
  };
}

/** Whether the policy has changed since its status was written. Pure. */
export function isOutdated(policy: Readonly<KubeObject>): boolean {
  const observed = policyOf(policy).status?.observedGeneration ?? 0;
  return (policy.metadata.generation ?? 0) > observed;
}

/** Checks policies as they change, one after the other, an expression in each turn of the event loop. */
export class PolicyStatusController {
  readonly #registry: Registry;
  readonly #source: KindSource;
  readonly #log: (line: string) => void;
  readonly #waiting = new Set<string>();
  #stop: (() => void) | undefined;
  #running = Promise.resolve();

  constructor(registry: Registry, source: KindSource, log: (line: string) => void) {
    this.#registry = registry;
    this.#source = source;
    this.#log = log;
  }

  start(): void {
    if (!this.#registry.hasRow(GROUP, PLURAL)) return;
    for (const policy of this.#registry.lookup.list(GROUP, PLURAL)) this.#plan(policy);
    this.#stop = this.#registry.store.subscribe(`${GROUP}/${PLURAL}`, (change) => {
      if (change.record.type !== 'DELETED') this.#plan(change.object);
    });
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#waiting.clear();
  }

  /** Resolves once all that is known of has its status. */
  async whenIdle(): Promise<void> {
    await this.#running;
  }

  #plan(policy: Readonly<KubeObject>): void {
    const { name = '' } = policy.metadata;
    if (!isOutdated(policy) || this.#waiting.has(name)) return;
    this.#waiting.add(name);
    this.#running = this.#running
      .then(() => this.#sync(name))
      .catch((error: unknown) => this.#log(`status of the policy ${name}: ${errorMessage(error)}`));
  }

  async #sync(name: string): Promise<void> {
    if (!this.#waiting.delete(name)) return;
    const policy = this.#registry.lookup.get(GROUP, PLURAL, '', name);
    if (policy === undefined || !isOutdated(policy)) return;
    const steps = typeWarnings(policyOf(policy).spec ?? {}, this.#source);
    let step = steps.next();
    while (step.done !== true) {
      await nextTurn();
      if (this.#stop === undefined) return;
      step = steps.next();
    }
    const expressionWarnings = step.value;
    const typeChecking = expressionWarnings.length === 0 ? {} : { expressionWarnings };
    await this.#apply(policy, { observedGeneration: policy.metadata.generation, typeChecking });
  }

  async #apply(policy: Readonly<KubeObject>, status: Record<string, unknown>): Promise<void> {
    const { apiVersion, kind, metadata } = policy;
    const { name = '', uid } = metadata;
    const row = this.#registry.rowOf(GROUP, PLURAL);
    const request = {
      config: { apiVersion, kind, metadata: { name }, status },
      force: true,
      mayCreate: () => undefined,
    };
    await this.#registry.store.commit(async () => {
      // Another policy may have its name by now.
      if (this.#registry.lookup.get(GROUP, PLURAL, '', name)?.metadata.uid !== uid) return;
      await applyObject(this.#registry, row, '', name, request, OPTIONS, statusRules(row));
    });
  }
}
