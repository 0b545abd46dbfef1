// APIServices: which server answers for a group and version. Those of this server are kept by aggregation/controller.ts, which
// also checks whether the others are available.

import { isObject } from '../patch/json-value.ts';
import { AGE_COLUMN, age, NAME_COLUMN, text } from './columns.ts';
import { addErrors, invalid, notSupported, required, syntax } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1035Label, dns1123Subdomain, pathSegment, portNumber } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';

export interface ApiServiceSpec {
  group?: string;
  version?: string;
  groupPriorityMinimum?: number;
  versionPriority?: number;
  caBundle?: string;
  insecureSkipTLSVerify?: boolean;
  service?: { namespace?: string; name?: string; port?: number };
}

export interface ApiServiceCondition {
  type?: string;
  status?: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export type ApiService = KubeObject & { spec?: ApiServiceSpec; status?: { conditions?: ApiServiceCondition[] } };

function isApiService(object: KubeObject): object is ApiService {
  return object.kind === 'APIService';
}

/** Throws TypeError for an object of another kind. */
export function apiServiceOf(object: KubeObject): ApiService {
  if (!isApiService(object)) throw new TypeError(`a ${object.kind} is no APIService`);
  return object;
}

/** What `kubectl get` shows of the service: "Local" for this server. */
export function serviceText({ spec }: ApiService): string {
  const service = spec?.service;
  return service === undefined ? 'Local' : `${service.namespace ?? ''}/${service.name ?? ''}`;
}

function available({ status }: ApiService): string {
  const found = status?.conditions?.find((one) => one.type === 'Available');
  if (found === undefined) return 'Unknown';
  return found.status === 'True' ? 'True' : `${found.status} (${found.reason ?? ''})`;
}

function between(field: string, value: number, low: number, high: number): FieldError[] {
  return value > low && value <= high ? [] : [invalid(field, value, `must be positive and less than ${high}`)];
}

function validate(object: KubeObject): FieldError[] {
  const { spec = {}, metadata } = apiServiceOf(object);
  const { group = '', version = '', service, caBundle = '', insecureSkipTLSVerify } = spec;
  const errors: FieldError[] = [];
  const name = `${version}.${group}`;
  if (metadata.name !== name && pathSegment(metadata.name ?? '').length === 0) {
    const why = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(name)}`;
    errors.push(invalid('metadata.name', metadata.name, why));
  }
  if (group === '' && version !== 'v1')
    errors.push(required('spec.group', 'only v1 may have an empty group and it better be legacy kube'));
  if (group !== '') addErrors(errors, syntax('spec.group', group, dns1123Subdomain(group)));
  addErrors(errors, syntax('spec.version', version, dns1035Label(version)));
  addErrors(errors, between('spec.groupPriorityMinimum', spec.groupPriorityMinimum ?? 0, 0, 20000));
  addErrors(errors, between('spec.versionPriority', spec.versionPriority ?? 0, 0, 1000));
  if (service === undefined) {
    if (caBundle !== '') {
      const bytes = `${Buffer.from(caBundle, 'base64').length} bytes`;
      errors.push(invalid('spec.caBundle', bytes, 'local APIServices may not have a caBundle'));
    }
    if (insecureSkipTLSVerify === true) {
      errors.push(invalid('spec.insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify'));
    }
    return errors;
  }
  if ((service.namespace ?? '') === '') errors.push(required('spec.service.namespace'));
  if ((service.name ?? '') === '') errors.push(required('spec.service.name'));
  const port = service.port ?? 443;
  const problems = portNumber(port);
  if (problems.length > 0) {
    errors.push(invalid('spec.service.port', port, `port is not valid: ${problems.join(', ')}`));
  }
  if (insecureSkipTLSVerify === true && caBundle !== '') {
    errors.push(invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  }
  return errors;
}

const CONDITION_STATUSES = ['True', 'False', 'Unknown'];

function validateStatus(object: KubeObject): FieldError[] {
  const { conditions = [] } = apiServiceOf(object).status ?? {};
  return conditions.flatMap(({ status = '' }, index) =>
    CONDITION_STATUSES.includes(status)
      ? []
      : [notSupported(`status.conditions[${index}].status`, status, CONDITION_STATUSES)],
  );
}

export const apiservices = defineKind({
  group: 'apiregistration.k8s.io',
  version: 'v1',
  kind: 'APIService',
  plural: 'apiservices',
  singular: 'apiservice',
  categories: ['api-extensions'],
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService',
  standardFinalizers: false,
  nameRule: (name) => pathSegment(name),
  strategy: {
    applyDefaults: (object) => {
      const service = apiServiceOf(object).spec?.service;
      if (isObject(service)) service.port ??= 443;
    },
    validateCreate: validate,
    validateUpdate: validate,
    validateStatusUpdate: validateStatus,
    table: {
      columns: [
        NAME_COLUMN,
        text('Service', 'The reference to the service that hosts this API endpoint.'),
        text('Available', 'Whether this service is available.'),
        AGE_COLUMN,
      ],
      row: (object, now) => {
        const service = apiServiceOf(object);
        return [
          object.metadata.name ?? '',
          serviceText(service),
          available(service),
          age(object.metadata.creationTimestamp, now),
        ];
      },
    },
  },
});
