// Which trust anchors a projected clusterTrustBundle source shows: selected by name, or by signer and labels, taken
// together, each once, as PEM. Pure. Failures are worded as the kubelet's.

import { createHash } from 'node:crypto';
import { matchesLabelSelector } from '../../client/selectors.ts';
import type { Stored } from '../../client/types.ts';
import type { LabelSelector, TrustRequest } from '../ports/api.ts';

export interface ClusterTrustBundle
  extends Stored<{ readonly apiVersion?: string; readonly kind?: string; metadata?: object }> {
  readonly spec?: { readonly signerName?: string; readonly trustBundle?: string };
}

const OPERATORS: ReadonlySet<string> = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist']);

function matches(selector: LabelSelector | undefined, labels: Readonly<Record<string, string>>): boolean {
  if (selector === undefined) return false;
  const unknown = selector.matchExpressions?.find(({ operator }) => !OPERATORS.has(operator));
  if (unknown !== undefined) {
    throw new Error(`while parsing label selector: "${unknown.operator}" is not a valid label selector operator`);
  }
  return matchesLabelSelector(selector, labels);
}

/** The anchors of all bundles, each once. The order has no meaning and depends on `seed`. */
export function normalizeAnchors(bundles: readonly string[], seed: string): string {
  const anchors = new Map<string, string>();
  for (const bundle of bundles) {
    for (const [, body = ''] of bundle.matchAll(/-----BEGIN [^-]+-----([\s\S]*?)-----END [^-]+-----/g)) {
      // A block's headers end at an empty line.
      const text = body.includes('\n\n') ? body.slice(body.indexOf('\n\n')) : body;
      const der = Buffer.from(text.replace(/\s+/g, ''), 'base64').toString('base64');
      anchors.set(der, createHash('sha256').update(seed).update(der).digest('hex'));
    }
  }
  return [...anchors]
    .sort(([, a], [, b]) => (a < b ? -1 : 1))
    .map(([der]) => `-----BEGIN CERTIFICATE-----\n${der.replace(/(.{64})(?=.)/g, '$1\n')}\n-----END CERTIFICATE-----\n`)
    .join('');
}

/** The text that the source's file shows. Throws where nothing is found and that is not allowed. */
export function trustAnchors(request: TrustRequest, all: readonly ClusterTrustBundle[], seed: string): string {
  const { name, signerName, labelSelector, optional } = request;
  let selected: readonly ClusterTrustBundle[];
  if (name !== undefined) {
    selected = all.filter(({ metadata }) => metadata.name === name);
    if (selected.length === 0 && !optional) {
      throw new Error(`while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "${name}" not found`);
    }
  } else if (signerName !== undefined) {
    selected = all.filter(
      ({ metadata, spec }) => spec?.signerName === signerName && matches(labelSelector, metadata.labels ?? {}),
    );
    if (selected.length === 0 && !optional) {
      throw new Error('combination of signerName and labelSelector matched zero ClusterTrustBundles');
    }
  } else throw new Error('ClusterTrustBundle projection requires either name or signerName to be set');
  return normalizeAnchors(
    selected.map(({ spec }) => spec?.trustBundle ?? ''),
    seed,
  );
}
