// Runs an object through a row as the registry does: decode, defaults, admission, validation.

import { AdmissionChain } from '../../../../apiserver/admission/chain.ts';
import { NO_CONFIGURATIONS } from '../../../../apiserver/admission/configuration.ts';
import type { AdmissionAttributes, Operation } from '../../../../apiserver/admission/plugin.ts';
import { atOnce } from '../../../../apiserver/admission/steps.ts';
import { createPlugins } from '../../../../apiserver/admission/table.ts';
import { WebhookClient } from '../../../../apiserver/admission/webhooks/client.ts';
import { NO_AUTHORIZER } from '../../../../apiserver/auth/authorizer.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { FieldError, KubeObject, ObjectLookup, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { checkBody } from '../../../../apiserver/schema/decode.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

export const NOW = epochMs(Date.parse('2025-01-01T12:00:00Z'));

export function row(plural: string, group = ''): ResourceKind {
  const found = RESOURCE_KINDS.find((kind) => kind.plural === plural && kind.group === group);
  if (found === undefined) throw new Error(`no row ${group}/${plural}`);
  return found;
}

export function object(kind: ResourceKind, fields: Record<string, unknown>): KubeObject {
  const { metadata, ...rest } = structuredClone(fields);
  const given = typeof metadata === 'object' && metadata !== null ? metadata : {};
  return {
    apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`,
    kind: kind.kind,
    metadata: { name: 'web', ...(kind.namespaced ? { namespace: 'demo' } : {}), ...given },
    ...rest,
  };
}

/** Knows the given objects, and a plain service account "default" in every namespace. */
export function lookupOf(...stored: { group: string; plural: string; object: KubeObject }[]): ObjectLookup {
  const account: KubeObject = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  const of = (group: string, plural: string, namespace: string): KubeObject[] =>
    stored
      .filter((one) => one.group === group && one.plural === plural && one.object.metadata.namespace === namespace)
      .map((one) => one.object);
  return {
    get: (group, plural, _namespace, name) =>
      stored.find((one) => one.group === group && one.plural === plural && one.object.metadata.name === name)?.object ??
      (plural === 'serviceaccounts' && name === 'default' ? account : undefined),
    list: (group, plural) =>
      stored.filter((one) => one.group === group && one.plural === plural).map((one) => one.object),
    each: of,
    having: of,
  };
}

export interface Outcome {
  readonly object: KubeObject;
  readonly errors: readonly FieldError[];
}

export function create(kind: ResourceKind, fields: Record<string, unknown>, lookup = lookupOf()): Outcome {
  const made = object(kind, fields);
  const { fatal, strict } = checkBody(kind, made);
  if (fatal !== undefined || strict.length > 0) throw new Error(`${fatal ?? ''}${strict.join()}`);
  kind.strategy.applyDefaults?.(made);
  atOnce(admission(lookup).admit(attributes(kind, 'CREATE', made)));
  const context = { user: USER, now: NOW, lookup };
  const allocated = kind.strategy.allocate?.(made, context) ?? [];
  kind.strategy.prepareForCreate?.(made);
  const errors = [...allocated, ...(kind.strategy.validateCreate?.(made) ?? [])];
  atOnce(admission(lookup).validate(attributes(kind, 'CREATE', made)));
  return { object: made, errors };
}

const USER = { name: 'admin', groups: ['system:masters'] };

/** The plugins that are on by default, but for the namespace's existence. */
export function admission(lookup: ObjectLookup): AdmissionChain {
  return new AdmissionChain(
    createPlugins(
      { disable: ['NamespaceLifecycle'] },
      {
        nodeAudiences: [],
        quotas: { quotas: () => [] },
        authorizer: () => NO_AUTHORIZER,
        webhooks: new WebhookClient(new VirtualClock()),
        findKind: () => undefined,
        configurations: NO_CONFIGURATIONS,
      },
    ),
    lookup,
  );
}

export function attributes(
  { group, version, plural, kind }: ResourceKind,
  operation: Operation,
  object: KubeObject,
  old?: KubeObject,
): AdmissionAttributes {
  return {
    operation,
    resource: { group, version, plural, subresource: '' },
    kind: { group, version, kind },
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name ?? '',
    object,
    old,
    options: {},
    user: USER,
    authorizer: NO_AUTHORIZER,
    dryRun: false,
    now: NOW,
    requestId: 'a request',
    warn: () => undefined,
    annotate: () => undefined,
    internal: true,
  };
}

/** A stored object and the same after `change`. */
export function update(
  kind: ResourceKind,
  stored: KubeObject,
  change: (draft: KubeObject) => void,
  lookup = lookupOf(),
): Outcome {
  const draft = structuredClone(stored);
  change(draft);
  const { fatal, strict } = checkBody(kind, draft);
  if (fatal !== undefined || strict.length > 0) throw new Error(`${fatal ?? ''}${strict.join()}`);
  kind.strategy.applyDefaults?.(draft);
  const given = kind.strategy.allocate?.(draft, { user: USER, now: NOW, lookup }, stored) ?? [];
  kind.strategy.prepareForUpdate?.(draft, stored);
  return { object: draft, errors: [...given, ...(kind.strategy.validateUpdate?.(draft, stored) ?? [])] };
}

/** `spec.containers[0].image: Required value`, as kubectl prints a cause: the same one once. */
export function lines(errors: readonly FieldError[]): string[] {
  return [...new Set(errors.map((error) => `${error.field}: ${error.detail}`))];
}
