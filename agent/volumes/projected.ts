// projected volumes: several sources in one directory, among them service account tokens. Every pod with a service
// account has one (kube-api-access-…), so this is the hot path.

import { type ContentPlan, contentPlan, mountContent, updateContent } from './content-volume.ts';
import type { ContentSource } from './projection.ts';
import type { Volume, VolumeType } from './volume-type.ts';

const plugin = 'kubernetes.io/projected';
const DEFAULT_TOKEN_SECONDS = 3600;

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number];

function contentSource(source: Projection): ContentSource {
  if (source.configMap !== undefined) {
    const { name = '', items, optional = false } = source.configMap;
    return { kind: 'configMap', name, items, optional };
  }
  if (source.secret !== undefined) {
    const { name = '', items, optional = false } = source.secret;
    return { kind: 'secret', name, items, optional };
  }
  if (source.downwardAPI !== undefined) return { kind: 'downwardAPI', items: source.downwardAPI.items ?? [] };
  if (source.serviceAccountToken !== undefined) {
    const { path, audience, expirationSeconds = DEFAULT_TOKEN_SECONDS } = source.serviceAccountToken;
    return { kind: 'token', path, audience: audience === '' ? undefined : audience, expirationSeconds };
  }
  if (source.clusterTrustBundle !== undefined) {
    const { path, name, signerName, labelSelector, optional = false } = source.clusterTrustBundle;
    return { kind: 'clusterTrustBundle', path, name, signerName, labelSelector, optional };
  }
  throw new Error(`projected volume source ${Object.keys(source).join(', ') || '(none)'} is not supported`);
}

export const projectedVolume: VolumeType<ContentPlan> = {
  plugin,
  plan(input) {
    const { sources = [], defaultMode } = input.volume.projected ?? {};
    return contentPlan(input, plugin, 'memory', sources.map(contentSource), defaultMode);
  },
  mount: mountContent,
  update: updateContent,
};
