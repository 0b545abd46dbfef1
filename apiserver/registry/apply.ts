// Server-side apply, for any kind: the configuration is laid over what is stored, or creates it, and the result is written
// like any other update. What becomes of the fields is decided in apply/.

import { converting, type Steps, waiting } from '../admission/steps.ts';
import { applyConfig } from '../apply/field-manager.ts';
import { badRequest, conflict, notFound } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { readable } from './conversions.ts';
import { decodeObject } from './decode.ts';
import { fieldWrite } from './field-managers.ts';
import { apiVersionOf, type Registry, type View, type WriteOptions } from './registry.ts';
import { checkPlacement, createSteps, mainRules, replaceStored, type UpdateRules, WrittenMeanwhile } from './write.ts';

/** As often as the real server tries where other clients write the object at the same time. */
const ATTEMPTS = 5;

/** A configuration to apply. */
export interface ApplyRequest {
  readonly config: JsonObject;
  /** Takes over what others manage. */
  readonly force: boolean;
  /** Throws 403 where the caller may not create such an object, which is what an apply does that finds none. */
  readonly mayCreate: () => void;
}

export interface AppliedView {
  readonly view: View;
  readonly created: boolean;
}

/** Server-side apply. Throws 400, 403, 404, 409 with a cause for each conflict, 422, or 500 for a configuration of another type. */
export async function applyObject(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  request: ApplyRequest,
  options: WriteOptions,
  rules: UpdateRules = mainRules(row),
): Promise<AppliedView> {
  const { config } = request;
  if (config['apiVersion'] !== apiVersionOf(row) || config['kind'] !== row.kind) {
    throw badRequest(`invalid object type: ${shownType(config)}`);
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await waiting(applySteps(registry, row, namespace, name, request, { ...options, tracked: true }, rules));
    } catch (error) {
      if (!(error instanceof WrittenMeanwhile) || attempt === ATTEMPTS) throw error;
    }
  }
}

function* applySteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  { config, force, mayCreate }: ApplyRequest,
  options: WriteOptions,
  rules: UpdateRules,
): Steps<AppliedView> {
  const stored = yield* readable(registry, row, namespace, name);
  if (stored === undefined && rules.subresource !== undefined) throw notFound(row, name);
  const live = stored === undefined ? undefined : registry.parse(row, stored);
  const write = fieldWrite(registry, row, options, rules.subresource);
  const applied = yield* converting(() => applyConfig(write, live, config, force, described(config)));
  const object = decodeObject(registry.checkBody, row, applied, undefined, options);
  if (stored === undefined) {
    const { uid = '' } = object.metadata;
    if (uid !== '') {
      const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflict(row, name, why);
    }
    checkPlacement(row, object, namespace, name);
    mayCreate();
    return { view: yield* createSteps(registry, row, namespace, object, options), created: true };
  }
  checkPlacement(row, object, namespace, name);
  return { view: yield* replaceStored(registry, row, stored, object, options, rules), created: false };
}

/** "apps/v1, Kind=Deployment", "/v1, Kind=Pod". */
function shownType({ apiVersion, kind }: JsonObject): string {
  const version = typeof apiVersion === 'string' ? apiVersion : '';
  return `${version.includes('/') ? '' : '/'}${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}

/** "default/web; apps/v1, Kind=Deployment" */
function described(config: JsonObject): string {
  const { name, namespace } = isObject(config['metadata']) ? config['metadata'] : {};
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return `${text(namespace)}/${text(name)}; ${shownType(config)}`;
}
