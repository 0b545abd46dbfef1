// What happens to a pod between defaulting and validation when it is created: its service account with the token
// volume, its priority class, its runtime class, the tolerations every pod has. Reads other objects, writes only the pod.

import { createHash } from 'node:crypto';
import type * as core from 'kubernetes-types/core/v1';
import type { RuntimeClass } from 'kubernetes-types/node/v1';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1';
import type { EpochMs } from '../../../lib/clock.ts';
import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { compareQuantities } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { isMirrorPod, secretNames } from '../../auth/pod-references.ts';
import { forbidden } from '../field-errors.ts';
import { AdmissionForbidden, type FieldError, type KubeObject, type RequestContext } from '../resource.ts';
import { as, type Container, type Pod, type PodSpec, type Volume } from '../shapes.ts';

/** Where a container finds its service account's token, CA and namespace. */
const TOKEN_MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
/** One hour, and seven seconds by which the kubelet recognises a token it may refresh early. */
const TOKEN_EXPIRATION_SECONDS = 3607;
export const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

export function admitPod(pod: Pod, context: RequestContext): FieldError[] {
  const spec = pod.spec;
  if (spec === undefined) return [];
  const errors: FieldError[] = [];
  if (isMirrorPod(pod)) refuseMirrorSecrets(pod, spec);
  else admitServiceAccount(pod, spec, context);
  admitPriority(spec, context);
  admitRuntimeClass(spec, context);
  admitNotReadyTolerations(spec);
  if (spec.ephemeralContainers !== undefined) {
    errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  return errors;
}

function admitServiceAccount(pod: Pod, spec: PodSpec, context: RequestContext): void {
  const namespace = pod.metadata.namespace ?? '';
  spec.serviceAccountName ??= 'default';
  spec.serviceAccount = spec.serviceAccountName;
  const name = spec.serviceAccountName;
  const stored = context.lookup.get('', 'serviceaccounts', namespace, name);
  if (stored === undefined) {
    throw new AdmissionForbidden(
      `error looking up service account ${namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
      // A new namespace gets its default account from a controller, a moment after it is made.
      name === 'default' ? { group: '', plural: 'serviceaccounts', namespace, name } : undefined,
    );
  }
  const account = as<core.ServiceAccount>(stored, 'ServiceAccount');
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(pod, spec, context);
  if ((spec.imagePullSecrets ?? []).length === 0 && account.imagePullSecrets !== undefined) {
    spec.imagePullSecrets = account.imagePullSecrets.map((secret) => ({ ...secret }));
  }
}

function mountToken(pod: Pod, spec: PodSpec, context: RequestContext): void {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const without = containers.filter(
    (container) => !(container.volumeMounts ?? []).some((mount) => mount.mountPath === TOKEN_MOUNT_PATH),
  );
  if (without.length === 0) return;
  const own = (spec.volumes ?? []).find(
    (volume) => volume.name?.startsWith('kube-api-access-') && isTokenVolume(volume),
  );
  const name = own?.name ?? `kube-api-access-${suffix(pod, context.now)}`;
  if (own === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
  for (const container of without) addTokenMount(container, name);
}

function addTokenMount(container: Container, name: string): void {
  container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: TOKEN_MOUNT_PATH }];
}

/** Five letters that differ between pods; drawn from the pod, as this must be a function of its arguments. */
function suffix(pod: Pod, now: EpochMs): string {
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  const hash = createHash('sha256')
    .update(`${pod.metadata.uid ?? ''}/${pod.metadata.namespace ?? ''}/${pod.metadata.name ?? ''}/${now}`)
    .digest();
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

/** A mirror pod may refer to no account and no secret (the ServiceAccount admission). */
function refuseMirrorSecrets(pod: Pod, spec: PodSpec): void {
  if (spec.serviceAccountName !== undefined && spec.serviceAccountName !== '') {
    throw new AdmissionForbidden('a mirror pod may not reference service accounts');
  }
  if (secretNames(pod).length > 0) throw new AdmissionForbidden('a mirror pod may not reference secrets');
  if ((spec.volumes ?? []).some(isTokenVolume)) {
    throw new AdmissionForbidden('a mirror pod may not use ServiceAccountToken volume projections');
  }
}

interface Priority {
  readonly name: string | undefined;
  readonly value: number;
  readonly preemptionPolicy: string;
}

function admitPriority(spec: PodSpec, context: RequestContext): void {
  const found = priorityOf(spec.priorityClassName ?? '', context);
  if (spec.priority !== undefined && spec.priority !== found.value) {
    throw new AdmissionForbidden(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${found.value} from the given PriorityClass name`,
    );
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== found.preemptionPolicy) {
    throw new AdmissionForbidden(
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${found.preemptionPolicy} from the given PriorityClass name`,
    );
  }
  if (found.name !== undefined) spec.priorityClassName = found.name;
  spec.priority = found.value;
  spec.preemptionPolicy = found.preemptionPolicy;
}

function priorityOf(name: string, context: RequestContext): Priority {
  const builtIn = getOwn(SYSTEM_PRIORITIES, name);
  if (builtIn !== undefined) return { name, value: builtIn, preemptionPolicy: 'PreemptLowerPriority' };
  if (name !== '') {
    const stored = context.lookup.get('scheduling.k8s.io', 'priorityclasses', '', name);
    if (stored === undefined) throw new AdmissionForbidden(`no PriorityClass with name ${name} was found`);
    return priorityFrom(stored);
  }
  const defaults = context.lookup
    .list('scheduling.k8s.io', 'priorityclasses')
    .filter((stored) => as<PriorityClass>(stored, 'PriorityClass').globalDefault === true)
    .map(priorityFrom)
    .sort((a, b) => a.value - b.value);
  return defaults[0] ?? { name: undefined, value: 0, preemptionPolicy: 'PreemptLowerPriority' };
}

function priorityFrom(stored: KubeObject): Priority {
  const priorityClass = as<PriorityClass>(stored, 'PriorityClass');
  return {
    name: stored.metadata.name,
    value: priorityClass.value ?? 0,
    preemptionPolicy: priorityClass.preemptionPolicy ?? 'PreemptLowerPriority',
  };
}

function admitRuntimeClass(spec: PodSpec, context: RequestContext): void {
  const name = spec.runtimeClassName;
  if (name === undefined || name === '') {
    if (spec.overhead !== undefined && Object.keys(spec.overhead).length > 0) {
      throw new AdmissionForbidden(
        'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
      );
    }
    return;
  }
  const stored = context.lookup.get('node.k8s.io', 'runtimeclasses', '', name);
  if (stored === undefined)
    throw new AdmissionForbidden(`pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  const runtimeClass = as<RuntimeClass>(stored, 'RuntimeClass');
  const overhead = runtimeClass.overhead?.podFixed;
  if (spec.overhead !== undefined && !sameQuantities(spec.overhead, overhead ?? {})) {
    throw new AdmissionForbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
  if (overhead !== undefined) spec.overhead = { ...overhead };
  const scheduling = runtimeClass.scheduling;
  if (scheduling === undefined) return;
  const nodeSelector = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    const own = getOwn(spec.nodeSelector, key);
    if (own !== undefined && own !== value) {
      throw new AdmissionForbidden(
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
    }
    setOwn(nodeSelector, key, value);
  }
  if (scheduling.nodeSelector !== undefined) spec.nodeSelector = nodeSelector;
  for (const toleration of scheduling.tolerations ?? []) {
    if (!(spec.tolerations ?? []).some((own) => sameJson(own, toleration))) {
      spec.tolerations = [...(spec.tolerations ?? []), { ...toleration }];
    }
  }
}

type Quantities = { readonly [name: string]: string | undefined };

function sameQuantities(a: Quantities, b: Quantities): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => {
    const [left, right] = [getOwn(a, name), getOwn(b, name)];
    return left !== undefined && right !== undefined && compareQuantities(left, right) === 0;
  });
}

/** Every pod tolerates a node that is not ready or not reachable for five minutes. */
export function admitNotReadyTolerations(spec: PodSpec): void {
  const own = spec.tolerations ?? [];
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (key) =>
      !own.some(
        (toleration) =>
          (toleration.key === key || (toleration.key ?? '') === '') &&
          (toleration.effect === 'NoExecute' || (toleration.effect ?? '') === ''),
      ),
  );
  if (added.length === 0) return;
  spec.tolerations = [
    ...own,
    ...added.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 })),
  ];
}
