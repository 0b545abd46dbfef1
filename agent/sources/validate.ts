// Whether a static pod can be run at all: the essentials of the API's validation, which a manifest never went through,
// and the kubelet's own rule that a static pod refers to no object of the API. Pure; reports all errors.

import type { Container, Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { compareQuantities } from '../../lib/quantity.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_WORDS =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  'an alphanumeric character';
const SUBDOMAIN_WORDS =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  'end with an alphanumeric character';

type Say = (path: string, what: string) => void;

function quote(value: unknown): string {
  const written = JSON.stringify(value) ?? 'nothing';
  return written.length > 80 ? `${written.slice(0, 77)}..."` : written;
}

function invalid(value: unknown, why: string): string {
  return `Invalid value: ${quote(value)}: ${why}`;
}

function dnsLabel(name: string | undefined, path: string, report: Say): void {
  if (name === undefined || name === '') report(path, 'Required value');
  else if (name.length > 63) report(path, invalid(name, 'must be no more than 63 bytes'));
  else if (!LABEL.test(name)) report(path, invalid(name, LABEL_WORDS));
}

function oneOf(value: string | undefined, values: readonly string[], path: string, report: Say): void {
  if (value === undefined || values.includes(value)) return;
  report(path, `Unsupported value: ${quote(value)}: supported values: ${values.map(quote).join(', ')}`);
}

/** All annotations of an object, keys included. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** Everything that keeps the pod from being run, as "field: what"; empty for a good one. */
export function podProblems(pod: Pod): readonly string[] {
  const problems: string[] = [];
  const report: Say = (path, what) => problems.push(`${path}: ${what}`);
  checkMetadata(pod, report);
  checkSpec(pod, report);
  return problems;
}

function checkMetadata({ metadata }: Pod, report: Say): void {
  const { name, namespace, uid, labels = {}, annotations = {} } = metadata;
  if (name.length > 253) report('metadata.name', invalid(name, 'must be no more than 253 bytes'));
  else if (!SUBDOMAIN.test(name)) report('metadata.name', invalid(name, SUBDOMAIN_WORDS));
  dnsLabel(namespace, 'metadata.namespace', report);
  // It becomes the name of directories and cgroups.
  if (!/^[A-Za-z0-9][-A-Za-z0-9]{0,127}$/.test(uid)) {
    report('metadata.uid', invalid(uid, "must consist of alphanumeric characters and '-'"));
  }
  for (const [key, value] of Object.entries(labels)) {
    if (!qualifiedName(key)) report('metadata.labels', invalid(key, 'is not a label key'));
    if (value !== '' && (value.length > 63 || !QUALIFIED.test(value))) {
      report('metadata.labels', invalid(value, 'is not a label value'));
    }
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    if (!qualifiedName(key.toLowerCase())) report('metadata.annotations', invalid(key, 'is not an annotation key'));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) {
    report('metadata.annotations', `Too long: may not be more than ${MAX_ANNOTATIONS_BYTES} bytes`);
  }
}

function qualifiedName(key: string): boolean {
  const [name = '', prefix, ...more] = key.split('/').reverse();
  const prefixed = prefix === undefined || (prefix.length <= 253 && SUBDOMAIN.test(prefix));
  return more.length === 0 && prefixed && name.length <= 63 && QUALIFIED.test(name);
}

function checkSpec({ spec }: Pod, report: Say): void {
  oneOf(spec.restartPolicy, ['Always', 'OnFailure', 'Never'], 'spec.restartPolicy', report);
  oneOf(spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'], 'spec.dnsPolicy', report);
  if (spec.dnsPolicy === 'None' && (spec.dnsConfig?.nameservers ?? []).length === 0) {
    report(
      'spec.dnsConfig.nameservers',
      'Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
    );
  }
  const { terminationGracePeriodSeconds: grace = 0, activeDeadlineSeconds: deadline } = spec;
  if (grace < 0) report('spec.terminationGracePeriodSeconds', invalid(grace, 'must be greater than or equal to 0'));
  if (deadline !== undefined && deadline < 1) {
    report('spec.activeDeadlineSeconds', invalid(deadline, 'must be between 1 and 2147483647, inclusive'));
  }
  if (spec.hostname) dnsLabel(spec.hostname, 'spec.hostname', report);
  if (spec.subdomain) dnsLabel(spec.subdomain, 'spec.subdomain', report);
  if (spec.ephemeralContainers !== undefined) {
    report('spec.ephemeralContainers', 'Forbidden: cannot be set on create');
  }
  checkVolumes(spec, report);
  if (spec.containers.length === 0) report('spec.containers', 'Required value');
  const names = new Set<string>();
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const path = `spec.${list}[${index}]`;
      if (names.has(container.name)) report(`${path}.name`, `Duplicate value: ${quote(container.name)}`);
      names.add(container.name);
      checkContainer(container, spec, path, report);
      oneOf(container.restartPolicy, ['Always', 'OnFailure', 'Never'], `${path}.restartPolicy`, report);
    }
  }
}

function checkVolumes(spec: Pod['spec'], report: Say): void {
  const names = new Set<string>();
  for (const [index, volume] of (spec.volumes ?? []).entries()) {
    const path = `spec.volumes[${index}]`;
    dnsLabel(volume.name, `${path}.name`, report);
    if (names.has(volume.name)) report(`${path}.name`, `Duplicate value: ${quote(volume.name)}`);
    names.add(volume.name);
    if (Object.keys(volume).length > 2) report(path, 'Forbidden: may not specify more than 1 volume type');
    if (volume.hostPath === undefined) continue;
    if (!volume.hostPath.path) report(`${path}.hostPath.path`, 'Required value');
    else if (volume.hostPath.path.split('/').includes('..')) {
      report(`${path}.hostPath.path`, invalid(volume.hostPath.path, "must not contain '..'"));
    }
  }
}

function checkContainer(container: Container, spec: Pod['spec'], path: string, report: Say): void {
  dnsLabel(container.name, `${path}.name`, report);
  const { image = '' } = container;
  if (image === '') report(`${path}.image`, 'Required value');
  else if (image !== image.trim()) {
    report(`${path}.image`, invalid(image, 'must not have leading or trailing whitespace'));
  }
  oneOf(container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never'], `${path}.imagePullPolicy`, report);
  oneOf(
    container.terminationMessagePolicy,
    ['File', 'FallbackToLogsOnError'],
    `${path}.terminationMessagePolicy`,
    report,
  );
  checkPorts(container, spec.hostNetwork === true, path, report);
  for (const [index, variable] of (container.env ?? []).entries()) {
    const { name = '' } = variable;
    if (name === '') report(`${path}.env[${index}].name`, 'Required value');
    // Anything printable but '=' has been allowed since 1.32.
    else if (!/^[\x20-\x3c\x3e-\x7e]+$/.test(name)) {
      report(`${path}.env[${index}].name`, invalid(name, "must consist of printable ASCII characters other than '='"));
    }
  }
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  const mounted = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const here = `${path}.volumeMounts[${index}]`;
    if (!mount.name) report(`${here}.name`, 'Required value');
    else if (!volumes.has(mount.name)) report(`${here}.name`, `Not found: ${quote(mount.name)}`);
    if (!mount.mountPath) report(`${here}.mountPath`, 'Required value');
    else if (mounted.has(mount.mountPath)) report(`${here}.mountPath`, invalid(mount.mountPath, 'must be unique'));
    mounted.add(mount.mountPath);
  }
  checkResources(container, path, report);
  checkHandlers(container, path, report);
}

function checkPorts(container: Container, hostNetwork: boolean, path: string, report: Say): void {
  const isPort = (port: number): boolean => port >= 1 && port <= 65_535;
  for (const [index, port] of (container.ports ?? []).entries()) {
    const here = `${path}.ports[${index}]`;
    const { containerPort, hostPort, protocol } = port;
    if (containerPort === undefined) report(`${here}.containerPort`, 'Required value');
    else if (!isPort(containerPort)) {
      report(`${here}.containerPort`, invalid(containerPort, 'must be between 1 and 65535, inclusive'));
    }
    if (hostPort !== undefined && hostPort !== 0 && !isPort(hostPort)) {
      report(`${here}.hostPort`, invalid(hostPort, 'must be between 1 and 65535, inclusive'));
    }
    if (hostNetwork && hostPort !== containerPort) {
      report(`${here}.hostPort`, invalid(hostPort, 'must match `containerPort` when `hostNetwork` is true'));
    }
    oneOf(protocol, ['TCP', 'UDP', 'SCTP'], `${here}.protocol`, report);
  }
}

function checkResources({ resources }: Container, path: string, report: Say): void {
  const { requests = {}, limits = {} } = resources ?? {};
  for (const [list, amounts] of [['limits', limits] as const, ['requests', requests] as const]) {
    for (const [name, amount] of Object.entries(amounts)) {
      if (compareQuantities(amount, '0') < 0) {
        report(`${path}.resources.${list}[${name}]`, invalid(amount, 'must be greater than or equal to 0'));
      }
    }
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit = getOwn(limits, name);
    if (limit === undefined || compareQuantities(request, limit) <= 0) continue;
    report(`${path}.resources.requests`, invalid(request, `must be less than or equal to ${name} limit of ${limit}`));
  }
}

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'];

function checkHandlers(container: Container, path: string, report: Say): void {
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  const all = {
    livenessProbe,
    readinessProbe,
    startupProbe,
    'lifecycle.postStart': lifecycle?.postStart,
    'lifecycle.preStop': lifecycle?.preStop,
  };
  for (const [field, handler] of Object.entries(all)) {
    if (handler === undefined) continue;
    const handlers = Object.keys(handler).filter((key) => HANDLERS.includes(key));
    if (handlers.length === 0) report(`${path}.${field}`, 'Required value: must specify a handler type');
    if (handlers.length > 1) report(`${path}.${field}`, 'Forbidden: may not specify more than 1 handler type');
  }
}

/**
 * The first kind of API object that a static pod refers to, in the plural ("secrets"), or undefined. Such a pod cannot
 * be run: no admission has checked its access to that object, and without an API server there is none.
 */
export function apiReference({ spec }: Pod): string | undefined {
  if (spec.serviceAccountName || spec.serviceAccount) return 'serviceaccounts';
  if ((spec.imagePullSecrets ?? []).length > 0) return 'secrets';
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    for (const { valueFrom } of container.env ?? []) {
      if (valueFrom?.secretKeyRef !== undefined) return 'secrets';
      if (valueFrom?.configMapKeyRef !== undefined) return 'configmaps';
    }
    for (const { secretRef, configMapRef } of container.envFrom ?? []) {
      if (secretRef !== undefined) return 'secrets';
      if (configMapRef !== undefined) return 'configmaps';
    }
  }
  for (const volume of spec.volumes ?? []) {
    if (volume.secret !== undefined) return 'secrets';
    if (volume.configMap !== undefined) return 'configmaps';
    if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return 'persistentvolumeclaims';
    if (volume.csi?.nodePublishSecretRef !== undefined) return 'secrets';
    // The driver's CSIDriver object is needed.
    if (volume.csi !== undefined) return 'csidrivers';
    for (const source of volume.projected?.sources ?? []) {
      if (source.secret !== undefined) return 'secrets';
      if (source.configMap !== undefined) return 'configmaps';
      if (source.serviceAccountToken !== undefined) return 'serviceaccounts';
      if ('clusterTrustBundle' in source) return 'clustertrustbundles';
      if ('podCertificate' in source) return 'podcertificates';
    }
  }
  return 'resourceClaims' in spec ? 'resourceclaims' : undefined;
}
