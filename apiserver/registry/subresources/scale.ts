// <kind>/<name>/scale: spec.replicas and status.replicas of any kind that has them, as an autoscaling/v1 Scale.

import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { type Steps, waiting } from '../../admission/steps.ts';
import { applyConfig, type FieldWrite, resetFilter, trackUpdate } from '../../apply/field-manager.ts';
import { objectEntries, scaleEntries } from '../../apply/scale-fields.ts';
import { typeOfDefinition } from '../../apply/types.ts';
import { badRequest, conflict, invalid, MODIFIED } from '../../errors.ts';
import type { KubeObject, ResourceKind } from '../../kinds/resource.ts';
import { selectorText } from '../../kinds/shared/selectors.ts';
import { applyPatch, type PatchType } from '../../patch/apply.ts';
import { isObject, type JsonObject, shown } from '../../patch/json-value.ts';
import { checkBodyAs } from '../../schema/decode.ts';
import { admitRequest } from '../admit.ts';
import { readable } from '../conversions.ts';
import { apiVersionOf, type Registry, View, type WriteOptions } from '../registry.ts';
import { mainRules, updateSteps } from '../write.ts';

function part(object: Readonly<KubeObject>, field: string): JsonObject {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
}

/** Of a label selector, or of the plain labels that a ReplicationController selects by. */
function textOf(selector: unknown): string {
  if (!isObject(selector)) return '';
  const { matchLabels, matchExpressions } = selector;
  if (!isObject(matchLabels) && !Array.isArray(matchExpressions))
    return selectorText({ matchLabels: labelsOf(selector) });
  const expressions = Array.isArray(matchExpressions) ? matchExpressions.filter(isObject) : [];
  return selectorText({
    matchLabels: labelsOf(matchLabels),
    matchExpressions: expressions.map(({ key, operator, values }) => ({
      key: shown(key),
      operator: shown(operator),
      values: Array.isArray(values) ? values.map(shown) : [],
    })),
  });
}

function labelsOf(value: unknown): { [key: string]: string } {
  return Object.fromEntries(Object.entries(isObject(value) ? value : {}).map(([key, text]) => [key, shown(text)]));
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const field of path) value = isObject(value) ? getOwn(value, field) : undefined;
  return value;
}

function setAt(object: JsonObject, path: readonly string[], value: unknown): void {
  const [field = '', ...more] = path;
  if (more.length === 0) setOwn(object, field, value);
  else {
    const inner = getOwn(object, field);
    const child: JsonObject = isObject(inner) ? inner : {};
    setAt(child, more, value);
    setOwn(object, field, child);
  }
}

/** The Scale of an object, from where the kind has the values. */
export function scaleOf(object: Readonly<KubeObject>, { custom }: Pick<ResourceKind, 'custom'> = {}): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  if (custom?.scale !== undefined) {
    const { replicas, statusReplicas, selector = [] } = custom.scale;
    const text = selector.length === 0 ? undefined : valueAt(object, selector);
    return {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
      spec: { replicas: valueAt(object, replicas) ?? 0 },
      status: {
        replicas: valueAt(object, statusReplicas) ?? 0,
        ...(typeof text === 'string' && text !== '' ? { selector: text } : {}),
      },
    };
  }
  const spec = part(object, 'spec');
  const replicas = spec['replicas'] ?? 1;
  const selector = textOf(spec['selector']);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: part(object, 'status')['replicas'] ?? 0, ...(selector === '' ? {} : { selector }) },
  };
}

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' } as const;

const SCALE_TYPE = 'io.k8s.api.autoscaling.v1.Scale';
/** Of every built-in kind that can be scaled. */
const REPLICAS = ['f:spec', 'f:replicas'];

function replicasPath({ custom }: ResourceKind): string[] {
  return custom?.scale === undefined ? REPLICAS : custom.scale.replicas.map((field) => `f:${field}`);
}

/** The Scale of an object, for a response. */
export function scaleView(object: Readonly<KubeObject>, row: ResourceKind): View {
  const scale = scaleObject(scaleOf(object, row));
  return new View(JSON.stringify(scale), scale);
}

/** A Scale as admission sees it. */
function scaleObject(scale: JsonObject): KubeObject {
  const metadata = isObject(scale['metadata']) ? scale['metadata'] : {};
  return { ...scale, kind: 'Scale', apiVersion: 'autoscaling/v1', metadata };
}

/** What a client wants of a Scale. */
export type ScaleChange =
  | { readonly by: 'update'; readonly scale: unknown }
  | { readonly by: 'patch'; readonly patch: unknown; readonly type: PatchType }
  | { readonly by: 'apply'; readonly config: JsonObject; readonly force: boolean };

/** Sets spec.replicas through a Scale and returns the object. Throws 400, 403, 404, 409, 413 or 422. */
export function updateScale(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  change: ScaleChange,
  options: WriteOptions,
): Promise<View> {
  return waiting(scaleSteps(registry, row, namespace, name, change, options));
}

/** The Scale after the change, with the managed fields of a Scale. `live` is the one before. */
function changed(change: ScaleChange, live: KubeObject, write: FieldWrite, name: string): KubeObject {
  if (change.by === 'apply') {
    const { apiVersion, kind } = change.config;
    if (apiVersion !== live.apiVersion || kind !== live.kind) {
      throw badRequest(`invalid object type: ${shown(apiVersion ?? '')}, Kind=${shown(kind ?? '')}`);
    }
    return applyConfig(write, live, change.config, change.force, `/${name}; autoscaling/v1, Kind=Scale`);
  }
  const body =
    change.by === 'update' ? change.scale : applyPatch(structuredClone(live), change.patch, change.type, SCALE_TYPE);
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  const scale = scaleObject(body);
  const { fatal } = checkBodyAs(SCALE_TYPE, scale);
  if (fatal !== undefined) throw badRequest(`Scale in version "v1" cannot be handled as a Scale: ${fatal}`);
  trackUpdate(write, live, scale);
  return scale;
}

function* scaleSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  change: ScaleChange,
  options: WriteOptions,
): Steps<View> {
  const stored = (yield* readable(registry, row, namespace, name)) ?? registry.need(row, namespace, name);
  const object = registry.parse(row, stored);
  const paths = new Map(registry.versionsOf(row).map((each) => [apiVersionOf(each), replicasPath(each)] as const));
  const old = scaleObject(scaleOf(object, row));
  const { managedFields } = object.metadata;
  const live = { ...old, metadata: { ...old.metadata, ...listed(scaleEntries(managedFields, paths)) } };
  const scale = changed(change, live, scaleWrite(registry, options), name);
  const place = { namespace, name, subresource: 'scale', kind: SCALE, object: scale, old };
  yield* admitRequest(registry, row, 'UPDATE', place, options);
  const replicas = part(scale, 'spec')['replicas'] ?? 0;
  if (typeof replicas !== 'number' || !Number.isSafeInteger(replicas) || replicas < 0) {
    const detail = `Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`;
    throw invalid(SCALE, name, [{ type: 'FieldValueInvalid', field: 'spec.replicas', detail }]);
  }
  const { uid = '', resourceVersion = '' } = scale.metadata;
  if (uid !== '' && uid !== object.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${object.metadata.uid}`;
    throw conflict({ group: row.group, plural: `${row.plural}/scale` }, name, why);
  }
  if (resourceVersion !== '' && resourceVersion !== object.metadata.resourceVersion) {
    throw conflict(row, name, MODIFIED);
  }
  if (row.custom?.scale === undefined) object['spec'] = { ...part(object, 'spec'), replicas };
  else setAt(object, row.custom.scale.replicas, replicas);
  const fields = objectEntries(managedFields, scale.metadata.managedFields, paths, apiVersionOf(row));
  if (fields === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = fields;
  const written = { ...options, admitted: true, tracked: true };
  return yield* updateSteps(registry, row, namespace, name, object, written, mainRules(row));
}

function listed(managedFields: Record<string, unknown>[] | undefined): { managedFields?: Record<string, unknown>[] } {
  return managedFields === undefined ? {} : { managedFields };
}

function scaleWrite(registry: Registry, { fieldManager: manager = '' }: WriteOptions): FieldWrite {
  const type = typeOfDefinition(SCALE_TYPE);
  const schema = { apiVersion: 'autoscaling/v1', type, version: () => undefined, filter: resetFilter([]) };
  return { schema, manager, subresource: 'scale', time: rfc3339(registry.clock.now()) };
}
