// Patches of any kind: the object as it is now, the patch applied, and then an update like any other (write.ts).

import { nextTurn } from '../../lib/turns.ts';
import { atOnce, type Steps, waiting } from '../admission/steps.ts';
import { conflict, MODIFIED } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { LARGE_BYTES } from '../limits.ts';
import { applyPatch, type PatchType } from '../patch/apply.ts';
import { readable } from './conversions.ts';
import { decodeObject } from './decode.ts';
import type { Registry, View, WriteOptions } from './registry.ts';
import { checkPlacement, mainRules, replaceStored, type UpdateRules, WrittenMeanwhile } from './write.ts';

/** Applies a patch to the object as it is now, without webhooks. Throws 400, 404, 409, 413, 415 or 422. */
export function patchObject(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  patch: unknown,
  type: PatchType,
  options: WriteOptions,
  rules: UpdateRules = mainRules(row),
): View {
  return atOnce(patchSteps(registry, row, namespace, name, patch, type, { ...options, internal: true }, rules));
}

function* patchSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  patch: unknown,
  type: PatchType,
  options: WriteOptions,
  rules: UpdateRules,
): Steps<View> {
  const stored = (yield* readable(registry, row, namespace, name)) ?? registry.need(row, namespace, name);
  const patched = applyPatch(registry.parse(row, stored), patch, type, row.schema);
  const object = decodeObject(registry.checkBody, row, patched, undefined, options);
  checkPlacement(row, object, namespace, name);
  return yield* replaceStored(registry, row, stored, object, options, rules);
}

/** A patch as it came; `read` returns a new value each time. */
export interface PatchRequest {
  readonly type: PatchType;
  readonly read: () => unknown;
  readonly large: boolean;
}

/** As often as the real server tries. */
const PATCH_ATTEMPTS = 5;

/**
 * `patchObject` for a client: with the webhooks; where patch or object are large, in several turns of the event loop; and
 * once more when another client has written the object in between.
 */
export async function patchInTurns(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  patch: PatchRequest,
  options: WriteOptions,
  rules: UpdateRules = mainRules(row),
): Promise<View> {
  const { type, read, large } = patch;
  for (let attempt = 0; attempt < PATCH_ATTEMPTS; attempt++) {
    const value = read();
    try {
      if (!large && registry.need(row, namespace, name).text.length < LARGE_BYTES) {
        return await waiting(patchSteps(registry, row, namespace, name, value, type, options, rules));
      }
      await nextTurn();
      const stored = (await waiting(readable(registry, row, namespace, name))) ?? registry.need(row, namespace, name);
      const patched = applyPatch(registry.parse(row, stored), value, type, row.schema);
      await nextTurn();
      const object = decodeObject(registry.checkBody, row, patched, undefined, options);
      checkPlacement(row, object, namespace, name);
      await nextTurn();
      if (registry.need(row, namespace, name).revision === stored.revision) {
        return await waiting(replaceStored(registry, row, stored, object, options, rules));
      }
    } catch (error) {
      if (!(error instanceof WrittenMeanwhile)) throw error;
    }
  }
  throw conflict(row, name, MODIFIED);
}
