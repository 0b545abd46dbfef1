// Secrets: types with the keys they demand, stringData folded into data, size, and immutability.

import type { Secret } from 'kubernetes-types/core/v1';
import { getOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { namedTable, text } from './columns.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, required, syntax, tooLong } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { configMapKey } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as, type Of } from './shapes.ts';

const of = (object: KubeObject) => as<Secret>(object, 'Secret');
/** Bytes of all values together. */
const MAX_SIZE = 1024 * 1024;
const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

/** Type → keys that must be there. */
const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
};
/** Type → its one key, whose value is JSON. */
const JSON_KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
};

function validate(object: KubeObject): FieldError[] {
  const secret = of(object);
  const data = secret.data ?? {};
  const type = secret.type ?? '';
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    addErrors(errors, syntax(`data[${key}]`, key, configMapKey(key)));
    size += Buffer.byteLength(value ?? '', 'base64');
  }
  if (size > MAX_SIZE) errors.push(tooLong('data', MAX_SIZE));
  for (const key of getOwn(REQUIRED_KEYS, type) ?? [])
    if (!Object.hasOwn(data, key)) errors.push(required(`data[${key}]`));
  const jsonKey = getOwn(JSON_KEYS, type);
  if (jsonKey !== undefined) {
    const value = getOwn(data, jsonKey);
    if (value === undefined) errors.push(required(`data[${jsonKey}]`));
    else if (!isJson(Buffer.from(value, 'base64').toString())) {
      errors.push(
        invalid(`data[${jsonKey}]`, '<secret contents redacted>', 'invalid character looking for beginning of value'),
      );
    }
  }
  if (type === 'kubernetes.io/basic-auth' && data['username'] === undefined && data['password'] === undefined) {
    errors.push(required('data[username]'), required('data[password]'));
  }
  if (
    type === 'kubernetes.io/service-account-token' &&
    (secret.metadata.annotations?.[ACCOUNT_ANNOTATION] ?? '') === ''
  ) {
    errors.push(required(`metadata.annotations[${ACCOUNT_ANNOTATION}]`));
  }
  return errors;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [now, before] = [of(object), of(old)];
  const errors: FieldError[] = [];
  if ((now.type ?? '') !== (before.type ?? '')) errors.push(invalid('type', now.type, IMMUTABLE));
  if (before.immutable === true) {
    const locked = 'field is immutable when `immutable` is set';
    if (now.immutable !== true) errors.push(forbidden('immutable', locked));
    if (!sameJson(now.data ?? {}, before.data ?? {})) errors.push(forbidden('data', locked));
  }
  return errors;
}

/** stringData is for writing only. */
function foldStringData(secret: Of<Secret>): void {
  const written = Object.entries(secret.stringData ?? {});
  if (written.length > 0) {
    const folded = written.map(([key, value]) => [key, Buffer.from(value ?? '').toString('base64')] as const);
    secret.data = { ...secret.data, ...Object.fromEntries(folded) };
  }
  delete secret.stringData;
}

export const secrets = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.Secret',
  updateMeta: ['update', 'own', 'rules', 'create'],
  strategy: {
    applyDefaults: (object) => {
      const secret = of(object);
      secret.type ??= 'Opaque';
      foldStringData(secret);
    },
    validateCreate: validate,
    validateUpdate,
    selectableFields: { type: (object) => of(object).type ?? '' },
    table: namedTable(
      [
        text('Type', 'Used to facilitate programmatic handling of secret data.'),
        text('Data', 'Data contains the secret data.'),
      ],
      (object) => {
        const secret = of(object);
        return [secret.type ?? '', Object.keys(secret.data ?? {}).length];
      },
    ),
  },
});
