// MutatingAdmissionWebhook: webhooks change the object one after the other, by JSON patches. Where one of them has changed
// it, the other mutating plugins run once more, and so do the webhooks that ask for it when the object has changed since
// (k8s.io/apiserver/pkg/admission/plugin/webhook/mutating).

import { internalError } from '../../errors.ts';
import type { KubeObject, ObjectLookup } from '../../kinds/resource.ts';
import { applyJsonPatch } from '../../patch/json-patch.ts';
import { isObject, PatchError } from '../../patch/json-value.ts';
import type { AdmissionAttributes, RemotePlugin } from '../plugin.ts';
import { whenConverted } from '../steps.ts';
import { callWebhook, settleFailure } from '../webhooks/call.ts';
import type { WebhookClient } from '../webhooks/client.ts';
import { type ConfiguredWebhook, concerns, configuredWebhooks, isExempt } from '../webhooks/match.ts';

const MUTATION = 'mutation.webhook.admission.k8s.io/';

/** What the first pass of a request leaves for the second. */
interface Passes {
  round: 0 | 1;
  /** Called before, and to be called again when something else changes the object. */
  reinvocable: Set<string>;
  /** To be called in the second pass. */
  readonly due: Set<string>;
  /** JSON of the object when the first pass was over. */
  output: string;
}

/** Puts the patched object in the place of the request's, as it would have been decoded. */
function applyPatch(
  attributes: AdmissionAttributes,
  seen: AdmissionAttributes,
  operations: readonly unknown[],
  name: string,
): boolean {
  const { object } = attributes;
  if (operations.length === 0) return false;
  if (object === undefined) {
    throw internalError(
      `admission webhook ${JSON.stringify(name)} attempted to modify the object, which is not supported for this operation`,
    );
  }
  const before = JSON.stringify(object);
  try {
    const patched = applyJsonPatch(structuredClone(seen.object), operations);
    if (!isObject(patched) || !isObject(patched['metadata'] ?? {})) {
      throw new PatchError('inapplicable', 'the patch leaves something that is not an object');
    }
    replace(object, seen === attributes ? patched : inRequestForm(attributes, seen, patched));
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw internalError(error.message);
  }
  attributes.settle?.(object);
  return JSON.stringify(object) !== before;
}

/** A patched object of another version, in the version of the request. */
function inRequestForm(
  attributes: AdmissionAttributes,
  { resource, kind }: AdmissionAttributes,
  patched: Record<string, unknown>,
): KubeObject {
  const form = attributes
    .otherForms?.()
    .find((one) => one.resource.version === resource.version && one.resource.group === resource.group);
  if (form === undefined) throw internalError(`there is no version ${resource.version} of ${resource.plural}`);
  const { metadata } = patched;
  const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
  return form.toRequest({ ...patched, apiVersion, kind: kind.kind, metadata: isObject(metadata) ? metadata : {} });
}

/** Gives `object` the contents, but for what says which kind it is. */
function replace(object: KubeObject, contents: Record<string, unknown>): void {
  const { apiVersion, kind } = object;
  for (const field of Object.keys(object)) delete object[field];
  Object.assign(object, contents, { apiVersion, kind });
  if (!isObject(object.metadata)) object.metadata = {};
}

export function mutatingAdmissionWebhook(client: WebhookClient): RemotePlugin {
  const passes = new WeakMap<AdmissionAttributes, Passes>();

  async function callOne(
    configured: ConfiguredWebhook,
    index: number,
    attributes: AdmissionAttributes,
    seen: AdmissionAttributes,
    state: Passes,
    lookup: ObjectLookup,
  ): Promise<boolean> {
    const { name = '', reinvocationPolicy } = configured.hook;
    const key = `round_${state.round}_index_${index}`;
    let changed = false;
    try {
      const patch = await callWebhook(configured, 'mutating', seen, client, lookup);
      changed = await whenConverted(() => applyPatch(attributes, seen, patch, name));
    } catch (error) {
      settleFailure(error, configured, () => attributes.annotate(`failed-open.${MUTATION}${key}`, name));
    } finally {
      const mutation = { configuration: configured.configuration, webhook: name, mutated: changed };
      attributes.annotate(`${MUTATION}${key}`, JSON.stringify(mutation));
    }
    if (changed) requireAgain(state);
    if (reinvocationPolicy === 'IfNeeded') state.reinvocable.add(configured.id);
    return changed;
  }

  async function callAll(
    hooks: readonly ConfiguredWebhook[],
    attributes: AdmissionAttributes,
    lookup: ObjectLookup,
  ): Promise<boolean> {
    const state = passes.get(attributes) ?? { round: 0, reinvocable: new Set(), due: new Set(), output: '' };
    if (state.round === 1 && JSON.stringify(attributes.object) !== state.output) requireAgain(state);
    let again = false;
    for (const [index, configured] of hooks.entries()) {
      if (state.round === 1 && !state.due.has(configured.id)) continue;
      // An earlier webhook may have changed the labels.
      const seen = await whenConverted(() => concerns(configured, attributes, lookup));
      if (seen !== undefined && (await callOne(configured, index, attributes, seen, state, lookup))) again = true;
    }
    state.output = JSON.stringify(attributes.object);
    state.round = 1;
    passes.set(attributes, state);
    return again;
  }

  return {
    name: 'MutatingAdmissionWebhook',
    phase: 'mutating',
    plan: (attributes, lookup) => {
      const hooks = configuredWebhooks('mutatingwebhookconfigurations', lookup);
      if (hooks.length === 0 || isExempt(attributes)) return undefined;
      const any =
        passes.has(attributes) || hooks.some((configured) => concerns(configured, attributes, lookup) !== undefined);
      return any ? () => callAll(hooks, attributes, lookup) : undefined;
    },
  };
}

function requireAgain(state: Passes): void {
  for (const id of state.reinvocable) state.due.add(id);
  state.reinvocable = new Set();
}
