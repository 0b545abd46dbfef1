// ServiceAccount: a pod runs as an account that exists, with its token mounted (plugin/pkg/admission/serviceaccount).

import { createHash } from 'node:crypto';
import type * as core from 'kubernetes-types/core/v1';
import { isMirrorPod, secretNames } from '../../auth/pod-references.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import { as, type Container, type Pod, type PodSpec, podOf, type Volume } from '../../kinds/shapes.ts';
import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

/** Where a container finds its service account's token, CA and namespace. */
const TOKEN_MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
/** One hour, and seven seconds by which the kubelet recognises a token it may refresh early. */
const TOKEN_EXPIRATION_SECONDS = 3607;

function admitPod(spec: PodSpec, attributes: AdmissionAttributes, lookup: ObjectLookup): void {
  const { namespace } = attributes;
  spec.serviceAccountName = (spec.serviceAccountName ?? '') === '' ? 'default' : spec.serviceAccountName;
  spec.serviceAccount = spec.serviceAccountName;
  const name = spec.serviceAccountName ?? 'default';
  const stored = lookup.get('', 'serviceaccounts', namespace, name);
  if (stored === undefined) {
    throw new AdmissionForbidden(
      `error looking up service account ${namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
      // A new namespace gets its default account from a controller, a moment after it is made.
      name === 'default' ? { group: '', plural: 'serviceaccounts', namespace, name } : undefined,
    );
  }
  const account = as<core.ServiceAccount>(stored, 'ServiceAccount');
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) {
    mountToken(spec, attributes.requestId);
  }
  if ((spec.imagePullSecrets ?? []).length === 0 && account.imagePullSecrets !== undefined) {
    spec.imagePullSecrets = account.imagePullSecrets.map((secret) => ({ ...secret }));
  }
}

function mountToken(spec: PodSpec, requestId: string): void {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const without = containers.filter(
    (container) => !(container.volumeMounts ?? []).some((mount) => mount.mountPath === TOKEN_MOUNT_PATH),
  );
  if (without.length === 0) return;
  const own = (spec.volumes ?? []).find(
    (volume) => volume.name?.startsWith('kube-api-access-') && isTokenVolume(volume),
  );
  const name = own?.name ?? `kube-api-access-${suffix(requestId)}`;
  if (own === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
  for (const container of without) addTokenMount(container, name);
}

function addTokenMount(container: Container, name: string): void {
  container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: TOKEN_MOUNT_PATH }];
}

/** Five letters that differ between pods; drawn from the request, as this must be a function of its arguments. */
function suffix(requestId: string): string {
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  const hash = createHash('sha256').update(requestId).digest();
  return Array.from(hash.subarray(0, 5), (byte) => letters[byte % letters.length] ?? 'x').join('');
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_EXPIRATION_SECONDS, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
}

function isTokenVolume(volume: Volume): boolean {
  return (volume.projected?.sources ?? []).some((source) => source.serviceAccountToken !== undefined);
}

/** A mirror pod may refer to no account and no secret. */
function refuseMirrorSecrets(pod: Pod, spec: PodSpec): void {
  if (spec.serviceAccountName !== undefined && spec.serviceAccountName !== '') {
    throw new AdmissionForbidden('a mirror pod may not reference service accounts');
  }
  if (secretNames(pod).length > 0) throw new AdmissionForbidden('a mirror pod may not reference secrets');
  if ((spec.volumes ?? []).some(isTokenVolume)) {
    throw new AdmissionForbidden('a mirror pod may not use ServiceAccountToken volume projections');
  }
}

export const serviceAccount: AdmissionPlugin = {
  name: 'ServiceAccount',
  handles: handlesOnly('', 'pods', 'CREATE'),
  admit: (attributes, lookup) => {
    const pod = attributes.object === undefined ? undefined : podOf(attributes.object);
    if (pod?.spec === undefined) return;
    if (isMirrorPod(pod)) refuseMirrorSecrets(pod, pod.spec);
    else admitPod(pod.spec, attributes, lookup);
  },
};
