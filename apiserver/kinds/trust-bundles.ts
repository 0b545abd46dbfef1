// ClusterTrustBundles: the certificates that a signer's certificates are checked with, for pods to have as files.

import { X509Certificate } from 'node:crypto';
import type { ClusterTrustBundle } from 'kubernetes-types/certificates/v1alpha1';
import { namedTable, text } from './columns.ts';
import { IMMUTABLE, invalid, required } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Subdomain } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<ClusterTrustBundle>(object, 'ClusterTrustBundle');
const MAX_BYTES = 1024 * 1024;
const OMITTED = '<value omitted>';

/** A signer's bundles are called after it, its slash a colon; others have no colon in their names. */
function validateName(name: string, signerName: string): FieldError[] {
  const prefix = `${signerName.replaceAll('/', ':')}:`;
  if (signerName === '') {
    if (!name.includes(':')) return [];
    return [invalid('metadata.name', name, 'ClusterTrustBundle without signer name must not have ":" in its name')];
  }
  if (name.startsWith(prefix)) return [];
  const detail = `ClusterTrustBundle for signerName ${signerName} must be named with prefix ${prefix}`;
  return [invalid('metadata.name', name, detail)];
}

/** DNS labels, with colons between a signer's name and the rest. */
function nameRule(name: string): string[] {
  return name.split(':').flatMap((part) => dns1123Subdomain(part));
}

function validateBundle(bundle: string): FieldError[] {
  const field = 'spec.trustBundle';
  const wrong = (detail: string): FieldError => invalid(field, OMITTED, detail);
  if (bundle === '') return [required(field)];
  if (Buffer.byteLength(bundle) > MAX_BYTES) return [wrong(`must have at most ${MAX_BYTES} bytes`)];
  const errors: FieldError[] = [];
  const entries = new Map<string, number[]>();
  for (const [index, match] of [...bundle.matchAll(/-----BEGIN ([^-]+)-----\n([\s\S]*?)-----END \1-----/g)].entries()) {
    const [whole, type = '', body = ''] = match;
    const problem = blockProblem(type, body, whole);
    if (problem !== undefined) errors.push(wrong(`entry ${index} ${problem}`));
    const key = body.replace(/\s+/g, '');
    entries.set(key, [...(entries.get(key) ?? []), index]);
  }
  if (errors.length > 0) return errors;
  if (entries.size === 0) return [wrong('at least one trust anchor must be provided')];
  return [...entries.values()]
    .filter((same) => same.length > 1)
    .map((same) => wrong(`duplicate trust anchor (indices [${same.join(' ')}])`));
}

function blockProblem(type: string, body: string, pem: string): string | undefined {
  if (type !== 'CERTIFICATE') return `has bad block type: ${type}`;
  if (/^[\w-]+:/m.test(body)) return 'has PEM block headers';
  try {
    const { ca } = new X509Certificate(pem);
    return ca ? undefined : 'does not have CA bit set';
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    return 'does not parse as X.509';
  }
}

function validate(object: KubeObject): FieldError[] {
  const { signerName = '', trustBundle = '' } = of(object).spec ?? {};
  const errors = validateName(object.metadata.name ?? '', signerName);
  if (signerName !== '' && !/^[a-z0-9.-]+\.[a-z0-9-]+\/\S+$/.test(signerName)) {
    errors.push(
      invalid(
        'spec.signerName',
        signerName,
        'must be a fully qualified domain and path of the form "example.com/signer-name"',
      ),
    );
  }
  return [...errors, ...validateBundle(trustBundle)];
}

export const clustertrustbundles = defineKind({
  group: 'certificates.k8s.io',
  version: 'v1beta1',
  kind: 'ClusterTrustBundle',
  plural: 'clustertrustbundles',
  singular: 'clustertrustbundle',
  namespaced: false,
  subresources: [],
  // The types of v1alpha1 are those of v1beta1.
  schema: 'io.k8s.api.certificates.v1alpha1.ClusterTrustBundle',
  nameRule,
  strategy: {
    validateCreate: validate,
    validateUpdate: (object, old) => {
      const [now, before] = [of(object).spec?.signerName ?? '', of(old).spec?.signerName ?? ''];
      return [...(now === before ? [] : [invalid('spec.signerName', now, IMMUTABLE)]), ...validate(object)];
    },
    selectableFields: { 'spec.signerName': (object) => of(object).spec?.signerName ?? '' },
    table: namedTable([text('SignerName', 'The signer whose certificates this bundle is for.')], (object) => {
      const { signerName = '' } = of(object).spec ?? {};
      return [signerName === '' ? '<none>' : signerName];
    }),
  },
});
