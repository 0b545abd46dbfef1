// The API's defaults of a pod: what `kubectl get -o yaml` shows beyond what the user wrote. In place, and
// idempotent. Never validates.

import { imageTag } from '../../../lib/image.ts';
import { getOwn, setOwn } from '../../../lib/own-property.ts';
import type { Container, Lifecycle, Pod, PodSpec, Probe, Volume } from '../shapes.ts';
import { defaultClaimSpec } from '../storage/claims.ts';

export function applyPodDefaults(pod: Pod): void {
  const spec = pod.spec;
  if (spec === undefined) return;
  defaultPodSpec(spec);
  // A template keeps these as they were written; each of its pods gets them.
  spec.enableServiceLinks ??= true;
  // A negative period means "as soon as possible" (old API).
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (container.resources !== undefined) defaultRequests(container.resources);
    if (spec.hostNetwork === true) defaultHostPorts(container);
  }
  for (const container of spec.ephemeralContainers ?? []) if (spec.hostNetwork === true) defaultHostPorts(container);
  if (spec.resources !== undefined) defaultRequests(spec.resources, isOfPods);
}

/** Of pods and of pod templates. */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ??= 'Always';
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ??= 'default-scheduler';
  spec.securityContext ??= {};
  // serviceAccount is the old name of serviceAccountName; both are shown.
  const account = spec.serviceAccountName ?? spec.serviceAccount;
  if (account !== undefined) {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])];
  for (const container of all) {
    defaultContainer(container);
    container.resources ??= {};
  }
}

function defaultHostPorts(container: Container): void {
  for (const port of container.ports ?? []) {
    if (port.containerPort !== undefined) port.hostPort ??= port.containerPort;
  }
}

function defaultContainer(container: Container): void {
  const image = container.image ?? '';
  container.imagePullPolicy ??= image !== '' && imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent';
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  for (const port of container.ports ?? []) port.protocol ??= 'TCP';
  for (const variable of container.env ?? []) {
    if (variable.valueFrom?.fieldRef !== undefined) variable.valueFrom.fieldRef.apiVersion ??= 'v1';
    if (variable.valueFrom?.resourceFieldRef !== undefined) variable.valueFrom.resourceFieldRef.divisor ??= '0';
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe !== undefined) defaultProbe(probe);
  }
  if (container.lifecycle !== undefined) defaultLifecycle(container.lifecycle);
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
  if (probe.httpGet !== undefined) defaultHttpGet(probe.httpGet);
  if (probe.grpc !== undefined) probe.grpc.service ??= '';
}

function defaultHttpGet(action: { path?: string | undefined; scheme?: string | undefined }): void {
  action.path ??= '/';
  action.scheme ??= 'HTTP';
}

function defaultLifecycle(lifecycle: Lifecycle): void {
  for (const handler of [lifecycle.postStart, lifecycle.preStop]) {
    if (handler?.httpGet !== undefined) defaultHttpGet(handler.httpGet);
  }
}

/** The resources that a pod may have as a whole. */
const isOfPods = (name: string): boolean => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');

/** A resource with a limit and no request requests its limit. */
function defaultRequests(resources: NonNullable<Container['resources']>, applies = (_name: string) => true): void {
  if (resources.limits === undefined) return;
  resources.requests ??= {};
  for (const [name, limit] of Object.entries(resources.limits)) {
    if (applies(name) && getOwn(resources.requests, name) === undefined) setOwn(resources.requests, name, limit);
  }
}

const DEFAULT_MODE = 0o644;

function defaultVolume(volume: Volume): void {
  const sources = Object.keys(volume).filter((field) => field !== 'name');
  if (sources.length === 0) volume.emptyDir = {};
  for (const source of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (source !== undefined) source.defaultMode ??= DEFAULT_MODE;
  }
  if (volume.hostPath !== undefined) volume.hostPath.type ??= '';
  for (const item of volume.downwardAPI?.items ?? []) defaultDownwardItem(item);
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken !== undefined) source.serviceAccountToken.expirationSeconds ??= 3600;
    for (const item of source.downwardAPI?.items ?? []) defaultDownwardItem(item);
  }
  const template = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (template !== undefined) defaultClaimSpec(template);
  if (volume.iscsi !== undefined) volume.iscsi.iscsiInterface ??= 'default';
  if (volume.image !== undefined) {
    const reference = volume.image.reference ?? '';
    if (reference !== '') volume.image.pullPolicy ??= imageTag(reference) === 'latest' ? 'Always' : 'IfNotPresent';
  }
  if (volume.ephemeral?.volumeClaimTemplate?.spec !== undefined) {
    volume.ephemeral.volumeClaimTemplate.spec.volumeMode ??= 'Filesystem';
  }
}

function defaultDownwardItem(item: {
  fieldRef?: { apiVersion?: string | undefined } | undefined;
  resourceFieldRef?: { divisor?: string | undefined } | undefined;
}): void {
  if (item.fieldRef !== undefined) item.fieldRef.apiVersion ??= 'v1';
  if (item.resourceFieldRef !== undefined) item.resourceFieldRef.divisor ??= '0';
}
