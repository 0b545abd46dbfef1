// Rules for a container's environment: names, where values come from, and which fields of the pod may be referred to.

import { parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { configMapKey, dns1123Subdomain, envVarName, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container } from '../shapes.ts';

type EnvVar = NonNullable<Container['env']>[number];
type Source = NonNullable<EnvVar['valueFrom']>;

const ENV_FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
const ENV_RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];
const VOLUME_FIELDS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

export function validateEnv(field: string, variables: readonly EnvVar[]): FieldError[] {
  return variables.flatMap((variable, index) => {
    const at = `${field}[${index}]`;
    const name = variable.name ?? '';
    const errors = name === '' ? [required(`${at}.name`)] : syntax(`${at}.name`, name, envVarName(name));
    if (variable.valueFrom !== undefined)
      addErrors(errors, validateSource(`${at}.valueFrom`, variable.valueFrom, variable));
    return errors;
  });
}

function validateSource(field: string, source: Source, variable: EnvVar): FieldError[] {
  const errors: FieldError[] = [];
  let sources = 0;
  if (source.fieldRef !== undefined) {
    sources++;
    addErrors(errors, validateFieldRef(`${field}.fieldRef`, source.fieldRef, ENV_FIELDS));
  }
  if (source.resourceFieldRef !== undefined) {
    sources++;
    addErrors(errors, validateResourceFieldRef(`${field}.resourceFieldRef`, source.resourceFieldRef, false));
  }
  for (const kind of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const selector = source[kind];
    if (selector === undefined) continue;
    sources++;
    const { key = '', name = '' } = selector;
    addErrors(errors, syntax(`${field}.${kind}.name`, name, dns1123Subdomain(name)));
    if (key === '') errors.push(required(`${field}.${kind}.key`));
    else addErrors(errors, syntax(`${field}.${kind}.key`, key, configMapKey(key)));
  }
  if (sources === 0) {
    errors.push(
      invalid(field, '', 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'),
    );
  } else if ((variable.value ?? '') !== '') {
    errors.push(invalid(field, '', 'may not be specified when `value` is not empty'));
  } else if (sources > 1) {
    errors.push(invalid(field, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

type FieldRef = NonNullable<Source['fieldRef']>;

/** `supported` besides subscripted labels and annotations, which are always allowed. */
function validateFieldRef(field: string, ref: FieldRef, supported: readonly string[]): FieldError[] {
  if ((ref.apiVersion ?? '') === '') return [required(`${field}.apiVersion`)];
  const path = ref.fieldPath ?? '';
  if (path === '') return [required(`${field}.fieldPath`)];
  const unsupported = unsupportedPath(ref.apiVersion ?? '', path);
  if (unsupported !== undefined) {
    return [invalid(`${field}.fieldPath`, path, `error converting fieldPath: ${unsupported}`)];
  }
  const subscript = subscriptOf(path);
  if (subscript !== undefined) {
    const { list, key } = subscript;
    const name = list === 'metadata.annotations' ? key.toLowerCase() : key;
    return syntax(field, name, qualifiedName(name));
  }
  const current = path === 'spec.host' ? 'spec.nodeName' : path;
  return supported.includes(current) ? [] : [notSupported(`${field}.fieldPath`, current, supported)];
}

/** Fields that a field selector knows. */
const KNOWN_FIELDS = [
  ...['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid'],
  ...['spec.host', 'spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName'],
  ...['status.hostIP', 'status.hostIPs', 'status.phase', 'status.podIP', 'status.podIPs'],
];

function unsupportedPath(apiVersion: string, path: string): string | undefined {
  if (apiVersion !== 'v1') return `unsupported pod version: ${apiVersion}`;
  const subscript = subscriptOf(path);
  if (subscript === undefined) return KNOWN_FIELDS.includes(path) ? undefined : `field label not supported: ${path}`;
  return subscript.list === 'metadata.annotations' || subscript.list === 'metadata.labels'
    ? undefined
    : `field label does not support subscript: ${path}`;
}

/** "metadata.labels['app']" */
function subscriptOf(path: string): { readonly list: string; readonly key: string } | undefined {
  const start = path.indexOf("['");
  if (start <= 0 || !path.endsWith("']") || path.length < start + 4) return undefined;
  return { list: path.slice(0, start), key: path.slice(start + 2, -2) };
}

type ResourceRef = NonNullable<Source['resourceFieldRef']>;

function validateResourceFieldRef(field: string, ref: ResourceRef, inVolume: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { resource = '', containerName = '' } = ref;
  if (inVolume && containerName === '') errors.push(required(`${field}.containerName`));
  else if (resource === '') errors.push(required(`${field}.resource`));
  else if (!ENV_RESOURCES.includes(resource) && !isHugePagesRef(resource)) {
    errors.push(notSupported(`${field}.resource`, resource, ENV_RESOURCES));
  }
  return errors.concat(validateDivisor(`${field}.divisor`, resource, ref.divisor ?? '0'));
}

const isHugePagesRef = (resource: string): boolean => /^(limits|requests)\.hugepages-/.test(resource);
const BYTES = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

function validateDivisor(field: string, resource: string, divisor: string): FieldError[] {
  if ((parseQuantity(divisor) ?? 0n) === 0n) return [];
  if (resource.endsWith('.cpu')) {
    return divisor === '1m' || divisor === '1'
      ? []
      : [invalid(field, resource, "only divisor's values 1m and 1 are supported with the cpu resource")];
  }
  const what = resource.endsWith('.memory')
    ? 'memory'
    : resource.endsWith('.ephemeral-storage')
      ? 'local ephemeral storage'
      : isHugePagesRef(resource)
        ? 'hugepages'
        : '';
  if (what === '' || BYTES.includes(divisor)) return [];
  return [
    invalid(field, resource, `only divisor's values ${BYTES.join(', ')} are supported with the ${what} resource`),
  ];
}

type EnvFrom = NonNullable<Container['envFrom']>[number];

export function validateEnvFrom(field: string, sources: readonly EnvFrom[]): FieldError[] {
  return sources.flatMap((source, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const prefix = source.prefix ?? '';
    if (prefix !== '') addErrors(errors, syntax(`${at}.prefix`, prefix, envVarName(prefix)));
    let count = 0;
    for (const kind of ['configMapRef', 'secretRef'] as const) {
      const ref = source[kind];
      if (ref === undefined) continue;
      count++;
      if ((ref.name ?? '') === '') errors.push(required(`${at}.${kind}.name`));
      else addErrors(errors, syntax(`${at}.${kind}.name`, ref.name, dns1123Subdomain(ref.name ?? '')));
    }
    if (count === 0) errors.push(invalid(field, '', 'must specify one of: `configMapRef` or `secretRef`'));
    if (count > 1) errors.push(invalid(field, '', 'may not have more than one field specified at a time'));
    return errors;
  });
}

export interface DownwardFile {
  path?: string | undefined;
  fieldRef?: FieldRef | undefined;
  resourceFieldRef?: ResourceRef | undefined;
  mode?: number | undefined;
}

/** The source of a downward API volume's file. */
export function validateDownwardSource(field: string, file: DownwardFile): FieldError[] {
  if (file.fieldRef !== undefined) {
    const errors = validateFieldRef(`${field}.fieldRef`, file.fieldRef, VOLUME_FIELDS);
    if (file.resourceFieldRef === undefined) return errors;
    const why = 'fieldRef and resourceFieldRef can not be specified simultaneously';
    return errors.concat(invalid(field, 'resource', why));
  }
  return file.resourceFieldRef === undefined
    ? [required(field, 'one of fieldRef and resourceFieldRef is required')]
    : validateResourceFieldRef(`${field}.resourceFieldRef`, file.resourceFieldRef, true);
}
