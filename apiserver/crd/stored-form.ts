// Between one version of a definition and the one that is stored: by another apiVersion alone (strategy None), or by the
// definition's webhook, with the version's defaults filled in on the way out.

import { nextTurn } from '../../lib/turns.ts';
import { type KubeObject, Pending, type ResourceKind } from '../kinds/resource.ts';
import { parseObject } from '../storage/change.ts';
import type { VersionConverter } from './conversion.ts';
import { withMetadataOf } from './conversion-review.ts';
import { applyDefaults, hasDefaults, prune } from './prune.ts';
import type { Definition, DefinitionVersion, JsonSchema } from './types.ts';

type StoredAs = NonNullable<ResourceKind['storedAs']>;
/** What is parsed in one turn, in characters. */
const PART = 256 * 1024;

interface Form {
  readonly group: string;
  readonly plural: string;
  /** The row's. */
  readonly apiVersion: string;
  /** Of what is stored from now on. */
  readonly storage: string;
  readonly schema: JsonSchema;
  readonly storageSchema: JsonSchema;
  readonly isDefaulted: boolean;
}

/** Undefined where the stored text is this version's as it is. `converter`: present where the strategy is Webhook. */
export function storedForm(
  definition: Definition,
  version: DefinitionVersion,
  empty: JsonSchema,
  converter?: VersionConverter,
): StoredAs | undefined {
  const { group = '', versions = [] } = definition.spec ?? {};
  const storage = versions.find((one) => one.storage === true);
  const stored = definition.status?.storedVersions ?? [];
  const schema = version.schema?.openAPIV3Schema ?? empty;
  const form: Form = {
    group,
    plural: definition.status?.acceptedNames?.plural ?? '',
    apiVersion: `${group}/${version.name ?? ''}`,
    storage: `${group}/${storage?.name ?? ''}`,
    schema,
    storageSchema: storage?.schema?.openAPIV3Schema ?? empty,
    isDefaulted: hasDefaults(schema),
  };
  if (converter !== undefined && versions.length > 1) return byWebhook(form, converter);
  if (form.apiVersion === form.storage && stored.length <= 1 && !form.isDefaulted) return undefined;
  return byName(form);
}

const outdated =
  ({ storage }: Form) =>
  (text: string): boolean =>
    parseObject(text).apiVersion !== storage;

function byName(form: Form): StoredAs {
  const { group, plural, apiVersion, storage, schema, isDefaulted } = form;
  const to = (object: KubeObject, wanted: string): KubeObject =>
    object.apiVersion === wanted ? object : { ...object, apiVersion: wanted };
  return {
    group,
    plural,
    toStored: (object) => to(object, storage),
    fromStored: (object) => {
      const converted = to(object, apiVersion);
      if (isDefaulted) applyDefaults(converted, schema);
      return converted;
    },
    isOutdated: outdated(form),
  };
}

function byWebhook(form: Form, converter: VersionConverter): StoredAs {
  const { group, plural, apiVersion, storage, schema, storageSchema, isDefaulted } = form;
  const shaped = (object: KubeObject): KubeObject => {
    prune(object, schema, { unknown: () => undefined });
    if (isDefaulted) applyDefaults(object, schema);
    return object;
  };
  /** What is about to be stored, in the form in which it is. */
  const ready = new WeakMap<KubeObject, KubeObject>();
  const storable = (converted: KubeObject): KubeObject => {
    prune(converted, storageSchema, { unknown: () => undefined });
    return converted;
  };
  return {
    group,
    plural,
    toStored: (object) => {
      if (object.apiVersion === storage) return object;
      const converted = ready.get(object);
      if (converted !== undefined) return withMetadataOf(object, converted);
      return storable(need(converter, object, storage));
    },
    fromStored: (object) => {
      if (object.apiVersion !== apiVersion) return shaped(need(converter, object, apiVersion));
      if (isDefaulted) applyDefaults(object, schema);
      return object;
    },
    isOutdated: outdated(form),
    webhook: {
      fromStored: (texts) => convertTexts(texts, form, converter, shaped),
      toStored: async (object) => {
        if (object.apiVersion === storage) return;
        const [converted] = await converter.convert([object], storage);
        if (converted !== undefined) ready.set(object, storable(converted));
      },
    },
  };
}

function need(converter: VersionConverter, object: KubeObject, apiVersion: string): KubeObject {
  const known = converter.known(object, apiVersion);
  if (known !== undefined) return known;
  throw new Pending('the object is not converted yet', async () => {
    await converter.convert([object], apiVersion);
  });
}

async function convertTexts(
  texts: readonly string[],
  { apiVersion, isDefaulted }: Form,
  converter: VersionConverter,
  shaped: (object: KubeObject) => KubeObject,
): Promise<string[]> {
  const results: string[] = [];
  for (let from = 0; from < texts.length; ) {
    const part: KubeObject[] = [];
    for (let size = 0; from < texts.length && size < PART; from++) {
      const text = texts[from] ?? '';
      size += text.length;
      part.push(parseObject(text));
    }
    const others = part.filter((object) => object.apiVersion !== apiVersion);
    const converted = new Map<KubeObject, KubeObject>();
    for (const [index, object] of (await converter.convert(others, apiVersion)).entries()) {
      const original = others[index];
      if (original !== undefined) converted.set(original, object);
    }
    for (const object of part) {
      const other = converted.get(object);
      if (other === undefined && !isDefaulted) results.push(JSON.stringify(object));
      else results.push(JSON.stringify(shaped(other ?? object)));
    }
    if (from < texts.length) await nextTurn();
  }
  return results;
}
