// ClusterTrustBundles: the certificates that a signer's certificates are checked with, for pods to have as files.

import { X509Certificate } from 'node:crypto';
import type { ClusterTrustBundle } from 'kubernetes-types/certificates/v1alpha1';
import { namedTable, text } from './columns.ts';
import { IMMUTABLE, invalid } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Subdomain } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<ClusterTrustBundle>(object, 'ClusterTrustBundle');
const MAX_BYTES = 1024 * 1024;
const OMITTED = '<value omitted>';

/** The name of a signer's bundle begins with the signer's name, its slash a colon; other names have no colon. */
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

/** Each is parsed in the event loop; the bundles of browsers have 150. */
const MAX_ANCHORS = 1024;

function validateBundle(bundle: string): FieldError[] {
  const field = 'spec.trustBundle';
  const wrong = (detail: string): FieldError => invalid(field, OMITTED, detail);
  if (bundle === '') return [wrong('at least one trust anchor must be provided')];
  if (Buffer.byteLength(bundle) > MAX_BYTES) return [wrong(`must have at most ${MAX_BYTES} bytes`)];
  const blocks = pemBlocks(bundle);
  if (blocks.length > MAX_ANCHORS) return [wrong(`must have at most ${MAX_ANCHORS} trust anchors`)];
  const errors: FieldError[] = [];
  const entries = new Map<string, number[]>();
  for (const [index, { type, body, pem }] of blocks.entries()) {
    const key = body.replaceAll(/\s/g, '');
    const same = entries.get(key);
    if (same !== undefined) {
      same.push(index);
      continue;
    }
    entries.set(key, [index]);
    const problem = blockProblem(type, body, pem);
    if (problem !== undefined) errors.push(wrong(`entry ${index} ${problem}`));
  }
  if (errors.length > 0) return errors;
  if (entries.size === 0) return [wrong('at least one trust anchor must be provided')];
  return [...entries.values()]
    .filter((same) => same.length > 1)
    .map((same) => wrong(`duplicate trust anchor (indices [${same.join(' ')}])`));
}

interface PemBlock {
  readonly type: string;
  readonly body: string;
  readonly pem: string;
}

const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';

/** The blocks that begin and end with the same type, in order; each part of the text is scanned once. */
function pemBlocks(bundle: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  let [lineEnd, end] = [-1, -1];
  for (let start = bundle.indexOf(BEGIN); start >= 0; start = bundle.indexOf(BEGIN, start + 1)) {
    if (lineEnd < start) lineEnd = bundle.indexOf('\n', start);
    if (lineEnd < 0) break;
    const line = bundle.slice(start + BEGIN.length, lineEnd);
    if (!line.endsWith(DASHES)) continue;
    const type = line.slice(0, -DASHES.length);
    if (type === '' || type.includes('-')) continue;
    if (end < lineEnd) end = bundle.indexOf(END, lineEnd);
    if (end < 0) break;
    const last = `${END}${type}${DASHES}`;
    if (!bundle.startsWith(last, end)) continue;
    const pem = bundle.slice(start, end + last.length);
    blocks.push({ type, body: bundle.slice(lineEnd + 1, end), pem });
    start = end;
  }
  return blocks;
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
        "must be a fully qualified domain and path of the form 'example.com/signer-name'",
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
