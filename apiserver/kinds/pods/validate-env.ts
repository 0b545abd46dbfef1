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
    const key = selector.key ?? '';
    if ((selector.name ?? '') === '') errors.push(required(`${field}.${kind}.name`));
    if (key === '') errors.push(required(`${field}.${kind}.key`));
    else addErrors(errors, syntax(`${field}.${kind}.key`, key, configMapKey(key)));
  }
  if ('fileKeyRef' in source) sources++;
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
  const subscript = /^metadata\.(annotations|labels)\['(.*)'\]$/.exec(path);
  if (subscript !== null) {
    const key = subscript[2] ?? '';
    return syntax(field, key, qualifiedName(subscript[1] === 'annotations' ? key.toLowerCase() : key));
  }
  if (supported.includes(path)) return [];
  if (path.startsWith('metadata.') || path.startsWith('spec.') || path.startsWith('status.')) {
    return [notSupported(`${field}.fieldPath`, path, supported)];
  }
  return [invalid(`${field}.fieldPath`, path, `error converting fieldPath: field label not supported: ${path}`)];
}

type ResourceRef = NonNullable<Source['resourceFieldRef']>;

function validateResourceFieldRef(field: string, ref: ResourceRef, inVolume: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const resource = ref.resource ?? '';
  if (inVolume && (ref.containerName ?? '') === '') errors.push(required(`${field}.containerName`));
  if (resource === '') return errors.concat(required(`${field}.resource`));
  if (!ENV_RESOURCES.includes(resource) && !/^(limits|requests)\.hugepages-/.test(resource)) {
    return errors.concat(notSupported(`${field}.resource`, resource, ENV_RESOURCES));
  }
  const nano = parseQuantity(ref.divisor ?? '0') ?? 0n;
  const milli = resource.endsWith('.cpu');
  const allowed = milli
    ? ['1m', '1']
    : ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];
  if (nano !== 0n && !allowed.some((divisor) => parseQuantity(divisor) === nano)) {
    errors.push(
      invalid(
        `${field}.divisor`,
        ref.divisor,
        milli
          ? "only divisor's values 1m and 1 are supported with the cpu resource"
          : `only divisor's values ${allowed.join(', ')} are supported with the ${resource.split('.')[1]} resource`,
      ),
    );
  }
  return errors;
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

interface DownwardFile {
  path?: string | undefined;
  fieldRef?: FieldRef | undefined;
  resourceFieldRef?: ResourceRef | undefined;
  mode?: number | undefined;
}

/** The source of a downward API volume's file. */
export function validateDownwardSource(field: string, file: DownwardFile): FieldError[] {
  if (file.fieldRef !== undefined && file.resourceFieldRef !== undefined) {
    return [invalid(field, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')];
  }
  if (file.fieldRef !== undefined) return validateFieldRef(`${field}.fieldRef`, file.fieldRef, VOLUME_FIELDS);
  if (file.resourceFieldRef !== undefined) {
    return validateResourceFieldRef(`${field}.resourceFieldRef`, file.resourceFieldRef, true);
  }
  return [required(`${field}.fieldRef`, 'one of fieldRef and resourceFieldRef is required')];
}
