// CertificateSigningRequests: a caller's request for a certificate, which someone approves and a signer answers. What is
// requested stays as it is; approval and certificate are written by subresources. Messages of pkg/apis/certificates/validation.

import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { checkCertificates, PemError, readCertificateRequest } from '../pki/requests.ts';
import { AGE_COLUMN, age, humanDuration, NAME_COLUMN, text } from './columns.ts';
import { addErrors, duplicate, forbidden, invalid, notSupported, required } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import type { CallerWrite, FieldError, KubeObject, RequestContext } from './resource.ts';
import { as, type Loose } from './shapes.ts';
import { validateSignerName } from './shared/signers.ts';

const of = (object: KubeObject) => as<CertificateSigningRequest>(object, 'CertificateSigningRequest');
type Condition = NonNullable<NonNullable<Loose<CertificateSigningRequest>['status']>['conditions']>[number];

const USAGES = [
  ...['any', 'cert sign', 'client auth', 'code signing', 'content commitment', 'crl sign', 'data encipherment'],
  ...['decipher only', 'digital signature', 'email protection', 'encipher only', 'ipsec end system', 'ipsec tunnel'],
  ...['ipsec user', 'key agreement', 'key encipherment', 'microsoft sgc', 'netscape sgc', 'ocsp signing', 's/mime'],
  ...['server auth', 'signing', 'timestamping'],
];
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';
const MIN_SECONDS = 600;
const DECISIONS = ['Approved', 'Denied'];
const FINAL = [...DECISIONS, 'Failed'];
const STATUSES = ['False', 'True', 'Unknown'];
const EXCLUSIVE = 'Approved and Denied conditions are mutually exclusive';

const conditionsOf = (object: KubeObject): readonly Condition[] => of(object).status?.conditions ?? [];
const decode = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1');

/** The message of what `read` throws; undefined when it throws nothing. */
function problemOf(read: () => void): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof PemError) return error.message;
    throw error;
  }
}

function validateUsages(usages: readonly string[]): FieldError[] {
  const errors: FieldError[] = usages.length === 0 ? [required('spec.usages')] : [];
  for (const [index, usage] of usages.entries()) {
    if (!USAGES.includes(usage)) errors.push(notSupported(`spec.usages[${index}]`, usage, USAGES));
  }
  for (const [index, usage] of usages.entries()) {
    if (usages.indexOf(usage) < index) errors.push(duplicate(`spec.usages[${index}]`, usage));
  }
  return errors;
}

function validateConditions(conditions: readonly Condition[]): FieldError[] {
  const field = 'status.conditions';
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, { type = '', status = '' }] of conditions.entries()) {
    const at = `${field}[${index}]`;
    if (type === '') errors.push(required(`${at}.type`));
    const allowed = FINAL.includes(type) ? ['True'] : STATUSES;
    if (status === '') errors.push(required(`${at}.status`));
    else if (!allowed.includes(status)) errors.push(notSupported(`${at}.status`, status, allowed));
    if (DECISIONS.includes(type) && DECISIONS.some((other) => other !== type && seen.has(other))) {
      errors.push(invalid(field, type, EXCLUSIVE));
    }
    if (seen.has(type)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
  }
  return errors;
}

/** `old` is the stored one: what is wrong in it already is not refused again. */
function validate(object: KubeObject, old?: KubeObject): FieldError[] {
  const { spec = {}, status = {} } = of(object);
  const { request = '', usages = [], signerName = '', expirationSeconds } = spec;
  const errors: FieldError[] = [];
  const problem = problemOf(() => readCertificateRequest(decode(request), true));
  if (problem !== undefined) errors.push(invalid('spec.request', request, problem));
  addErrors(errors, validateUsages(usages));
  if (signerName === LEGACY_SIGNER) {
    errors.push(invalid('spec.signerName', signerName, 'the legacy signerName is not allowed via this API version'));
  } else addErrors(errors, validateSignerName('spec.signerName', signerName));
  if (expirationSeconds !== undefined && expirationSeconds < MIN_SECONDS) {
    const why = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(invalid('spec.expirationSeconds', expirationSeconds, why));
  }
  addErrors(errors, validateConditions(status.conditions ?? []));
  const { certificate = '' } = status;
  const unchanged = old !== undefined && (of(old).status?.certificate ?? '') === certificate;
  if (certificate !== '' && !unchanged) {
    const wrong = problemOf(() => checkCertificates(decode(certificate)));
    if (wrong !== undefined) errors.push(invalid('status.certificate', '<certificate data>', wrong));
  }
  return errors;
}

/** What this kind of update may do to the status. */
interface May {
  readonly approve: boolean;
  readonly certify: boolean;
}

function validateUpdate(object: KubeObject, old: KubeObject, may: May): FieldError[] {
  const errors = validate(object, old);
  const refuse = (why: string): void => {
    errors.push(forbidden('status.conditions', why));
  };
  const ofType = (one: KubeObject, type: string) => conditionsOf(one).filter((condition) => condition.type === type);
  for (const type of FINAL) {
    if (ofType(object, type).length < ofType(old, type).length) {
      refuse(`updates may not remove a condition of type "${type}"`);
    }
  }
  for (const type of may.approve ? [] : DECISIONS) {
    const [now, before] = [ofType(object, type), ofType(old, type)];
    if (now.length > before.length) refuse(`updates may not add a condition of type "${type}"`);
    else if (now.length === before.length && !sameJson(now, before)) {
      refuse(`updates may not modify a condition of type "${type}"`);
    }
  }
  const [now, before] = [of(object).status?.certificate ?? '', of(old).status?.certificate ?? ''];
  if (now === before) return errors;
  if (!may.certify) errors.push(forbidden('status.certificate', 'updates may not set certificate content'));
  else if (before !== '') {
    errors.push(forbidden('status.certificate', 'updates may not modify existing certificate content'));
  }
  return errors;
}

/** A request is from its creator, whatever it claims; conditions get the time of their writing. */
function applyCaller(object: KubeObject, { old, subresource }: CallerWrite, { user, now }: RequestContext): void {
  if (old === undefined) claim(object, user);
  else if (subresource === 'approval' || subresource === 'status') stampConditions(object, old, rfc3339(now));
}

function claim(object: KubeObject, { name, uid, groups, extra }: RequestContext['user']): void {
  const request = of(object);
  request.spec ??= {};
  const { spec } = request;
  for (const field of ['username', 'uid', 'groups', 'extra'] as const) delete spec[field];
  spec.username = name;
  if (uid !== undefined) spec.uid = uid;
  spec.groups = [...groups];
  if (extra !== undefined && Object.keys(extra).length > 0) {
    spec.extra = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
  }
}

/** Fills in when a condition was written, and when it got its status. */
function stampConditions(object: KubeObject, old: KubeObject, now: string): void {
  for (const condition of of(object).status?.conditions ?? []) {
    const before = conditionsOf(old).find(
      ({ type, status, lastTransitionTime }) =>
        type === condition.type && status === condition.status && lastTransitionTime !== undefined,
    );
    condition.lastUpdateTime ??= now;
    condition.lastTransitionTime ??= before?.lastTransitionTime ?? now;
  }
}

/** Everything but the metadata as it was. */
function keep(object: KubeObject, old: KubeObject): void {
  const [request, before] = [of(object), of(old)];
  request.spec = before.spec;
  request.status = before.status;
}

function conditionText(object: KubeObject): string {
  const types = conditionsOf(object).map(({ type }) => type);
  const decision = types.includes('Denied') ? 'Denied' : types.includes('Approved') ? 'Approved' : 'Pending';
  const issued = (of(object).status?.certificate ?? '') !== '';
  return `${decision}${types.includes('Failed') ? ',Failed' : ''}${issued ? ',Issued' : ''}`;
}

export const certificatesigningrequests = defineKind({
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
  singular: 'certificatesigningrequest',
  shortNames: ['csr'],
  namespaced: false,
  subresources: ['approval', 'status'],
  schema: 'io.k8s.api.certificates.v1.CertificateSigningRequest',
  // Any name at all.
  nameRule: () => [],
  strategy: {
    countsGenerations: false,
    resetFields: {
      '': [['spec'], ['status']],
      status: [['spec'], ['status', 'conditions']],
      approval: [['spec'], ['status', 'certificate']],
    },
    applyDefaults: (object) => {
      const { spec } = of(object);
      if (spec !== undefined && (spec.usages ?? []).length === 0) delete spec.usages;
    },
    applyCaller,
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    prepareForUpdate: keep,
    prepareSubresource: {
      approval: (object, old) => {
        const { conditions } = of(object).status ?? {};
        keep(object, old);
        const { conditions: _old, ...rest } = of(old).status ?? {};
        of(object).status = { ...rest, ...(conditions === undefined ? {} : { conditions }) };
      },
    },
    validateCreate: (object) => validate(object),
    validateUpdate: (object, old) => validateUpdate(object, old, { approve: false, certify: false }),
    validateStatusUpdate: (object, old) => validateUpdate(object, old, { approve: false, certify: true }),
    validateSubresource: {
      approval: (object, old) => validateUpdate(object, old, { approve: true, certify: false }),
    },
    selectableFields: { 'spec.signerName': (object) => of(object).spec?.signerName ?? '' },
    table: {
      columns: [
        NAME_COLUMN,
        AGE_COLUMN,
        text('SignerName', 'The signer that is to sign the request.'),
        text('Requestor', 'Who made the request.'),
        text('RequestedDuration', 'How long the certificate is to be valid.'),
        text('Condition', 'Whether the request is approved, denied or failed, and whether its certificate is there.'),
      ],
      row: (object, now) => {
        const { signerName = '', username = '', expirationSeconds } = of(object).spec ?? {};
        const duration = expirationSeconds === undefined ? '<none>' : humanDuration(expirationSeconds * 1000);
        return [
          object.metadata.name ?? '',
          age(object.metadata.creationTimestamp, now),
          signerName === '' ? '<none>' : signerName,
          username,
          duration,
          conditionText(object),
        ];
      },
    },
  },
});
