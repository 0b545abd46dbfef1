// The checks that the restricted level of the Pod Security Standards adds, with the words of
// k8s.io/pod-security-admission/policy. Pure.

import { getOwn } from '../../../lib/own-property.ts';
import type { Container, Volume } from '../../kinds/shapes.ts';
import { seccompProfile, validSeccomp } from './baseline.ts';
import {
  allContainers,
  type CheckPod,
  containersWith,
  isWindows,
  named,
  plural,
  quoted,
  setters,
  sorted,
} from './result.ts';

/** From version 1.25 on, Windows pods are exempt from what does not exist there. */
export const exceptWindows =
  (check: CheckPod): CheckPod =>
  (spec, metadata) =>
    isWindows(spec) ? undefined : check(spec, metadata);

export const allowPrivilegeEscalation: CheckPod = (spec) => {
  const names = containersWith(spec, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (names.length === 0) return undefined;
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${named(names)} must set securityContext.allowPrivilegeEscalation=false`,
  };
};

export const restrictedCapabilities: CheckPod = (spec) => {
  const capabilitiesOf = ({ securityContext }: Container) => securityContext?.capabilities;
  const keeping = containersWith(spec, (container) => capabilitiesOf(container)?.drop?.includes('ALL') !== true);
  const forbidden = (container: Container): string[] =>
    (capabilitiesOf(container)?.add ?? []).filter((name) => name !== 'NET_BIND_SERVICE');
  const adding = containersWith(spec, (container) => forbidden(container).length > 0);
  const details: string[] = [];
  if (keeping.length > 0) details.push(`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`);
  if (adding.length > 0) {
    const added = sorted(allContainers(spec).flatMap(forbidden));
    details.push(`${named(adding)} must not include ${quoted(added)} in securityContext.capabilities.add`);
  }
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') };
};

const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
];
const RESTRICTED_VOLUMES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
];

/** The type of a volume that restricted pods may not have; undefined for the others. */
function restrictedType(volume: Volume): string | undefined {
  const fields: { readonly [field: string]: unknown } = volume;
  if (ALLOWED_VOLUMES.some((field) => getOwn(fields, field) !== undefined)) return undefined;
  return RESTRICTED_VOLUMES.find((field) => getOwn(fields, field) !== undefined) ?? 'unknown';
}

export const restrictedVolumes: CheckPod = (spec) => {
  const bad = (spec.volumes ?? []).filter((volume) => restrictedType(volume) !== undefined);
  if (bad.length === 0) return undefined;
  const types = sorted(bad.map((volume) => restrictedType(volume) ?? ''));
  const names = `${plural('volume', 'volumes', bad.length)} ${quoted(bad.map(({ name = '' }) => name))}`;
  const what = plural('restricted volume type', 'restricted volume types', types.length);
  return {
    reason: 'restricted volume types',
    detail: `${names} ${plural('uses', 'use', bad.length)} ${what} ${quoted(types)}`,
  };
};

export const runAsNonRoot: CheckPod = (spec) => {
  const reason = 'runAsNonRoot != true';
  const ofPod = spec.securityContext?.runAsNonRoot;
  const own = ({ securityContext }: Container): boolean | undefined => securityContext?.runAsNonRoot;
  const who = setters(
    ofPod === false,
    containersWith(spec, (container) => own(container) === false),
  );
  if (who.length > 0) return { reason, detail: `${who.join(' and ')} must not set securityContext.runAsNonRoot=false` };
  const silent = ofPod === true ? [] : containersWith(spec, (container) => own(container) === undefined);
  if (silent.length === 0) return undefined;
  return { reason, detail: `pod or ${named(silent)} must set securityContext.runAsNonRoot=true` };
};

export const runAsUser: CheckPod = (spec) => {
  const names = containersWith(spec, ({ securityContext }) => securityContext?.runAsUser === 0);
  const who = setters(spec.securityContext?.runAsUser === 0, names);
  return who.length === 0
    ? undefined
    : { reason: 'runAsUser=0', detail: `${who.join(' and ')} must not set runAsUser=0` };
};

/** As the baseline's check, and some profile has to be set. */
export const restrictedSeccompProfile: CheckPod = (spec, metadata) => {
  const explicit = seccompProfile(spec, metadata);
  if (explicit !== undefined || validSeccomp(spec.securityContext?.seccompProfile)) return explicit;
  const silent = containersWith(spec, ({ securityContext }) => securityContext?.seccompProfile === undefined);
  if (silent.length === 0) return undefined;
  return {
    reason: 'seccompProfile',
    detail: `pod or ${named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
  };
};
