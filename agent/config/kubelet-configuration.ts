// Reads a KubeletConfiguration file: YAML or JSON in, a checked and complete configuration out. What the kubelet
// refuses is refused here, in one UserError that lists everything wrong. Touches no files itself.

import { isIP } from 'node:net';
import { dirname, isAbsolute, resolve } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { checkFeatureGates } from './feature-gates.ts';
import { DEFAULT_EVICTION_HARD, KUBELET_FIELDS, type KubeletConfiguration } from './kubelet-fields.ts';
import { type ConfigProblem, parseTable, printTable, unmet } from './schema.ts';
import { tracingEndpoint } from './tracing-endpoint.ts';
import { isRecord, readYamlObject } from './yaml-object.ts';

export const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
export const KIND = 'KubeletConfiguration';

/** The fields that a file sets, unchecked. */
export type RawConfiguration = Readonly<Record<string, unknown>>;

/** The fields of one file, apiVersion and kind checked and taken off. Throws UserError. */
export function readConfigurationText(source: string, file: string): RawConfiguration {
  const fail = (why: string, cause?: unknown): UserError =>
    new UserError(`kubelet configuration ${file}: ${why}`, { cause });
  const { apiVersion, kind, ...fields } = readYamlObject(source, KIND, fail);
  if (apiVersion !== API_VERSION) throw fail(`apiVersion must be ${API_VERSION}, not ${JSON.stringify(apiVersion)}`);
  if (kind !== KIND) throw fail(`kind must be ${KIND}, not ${JSON.stringify(kind)}`);
  return resolvePaths(fields, dirname(file));
}

/** Fields that are paths; relative ones are relative to the file they stand in, as the kubelet reads them. */
const PATH_FIELDS = ['staticPodPath', 'tlsCertFile', 'tlsPrivateKeyFile', 'podLogsDir', 'volumePluginDir'] as const;

function resolvePaths(fields: Record<string, unknown>, directory: string): RawConfiguration {
  const absolute = (value: unknown): unknown =>
    typeof value === 'string' && value !== '' && !isAbsolute(value) ? resolve(directory, value) : value;
  const resolved = { ...fields };
  for (const name of PATH_FIELDS) if (name in resolved) resolved[name] = absolute(resolved[name]);
  const { authentication } = resolved;
  if (isRecord(authentication) && isRecord(authentication['x509']) && 'clientCAFile' in authentication['x509']) {
    const { x509 } = authentication;
    resolved['authentication'] = { ...authentication, x509: { ...x509, clientCAFile: absolute(x509['clientCAFile']) } };
  }
  return resolved;
}

/**
 * The complete configuration from the fields set. Throws UserError naming every field that is unknown, of the wrong
 * type or out of range; `origin` names the source of the fields.
 */
export function completeConfiguration(raw: RawConfiguration, origin: string): KubeletConfiguration {
  const problems: ConfigProblem[] = [];
  const read = parseTable(KUBELET_FIELDS, raw, '', problems);
  const config: KubeletConfiguration = {
    ...read,
    nodeStatusReportFrequency: nodeStatusReportFrequency(read, raw),
    evictionHard: evictionHard(read.evictionHard, read.mergeDefaultEvictionSettings),
  };
  if (problems.length === 0) problems.push(...checkConfiguration(config), ...missing(config, 'ends'));
  if (problems.length > 0) {
    const messages = problems.map((p) =>
      /^un(known|recognized) /.test(p.message) ? p.message : `${p.path}: ${p.message}`,
    );
    throw new UserError(`${origin}: ${messages.join('; ')}`);
  }
  return config;
}

/** The unsupported settings of one kind: they end the agent, or are in the warning. */
function missing(config: KubeletConfiguration, kind: 'ends' | 'warns'): readonly ConfigProblem[] {
  const found = [...unmet(KUBELET_FIELDS, config), ...checkFeatureGates(config.featureGates)];
  return found.filter((one) => one.kind === kind);
}

/** Settings to be named in one warning: "hairpinMode (bridges are configured by CNI plugins)". */
export function settingsWithoutEffect(config: KubeletConfiguration): readonly string[] {
  return missing(config, 'warns').map(({ path, message }) => `${path} (${message})`);
}

/** The configuration in force as a file would say it, for /configz. */
export function printConfiguration(config: KubeletConfiguration): Record<string, unknown> {
  return printTable(KUBELET_FIELDS, config);
}

/** As often as the status is computed where that is set, else every five minutes; 0s is not set. */
function nodeStatusReportFrequency(
  read: { readonly nodeStatusReportFrequency: number | undefined; readonly nodeStatusUpdateFrequency: number },
  raw: RawConfiguration,
): number {
  const set = read.nodeStatusReportFrequency ?? 0;
  if (set !== 0) return set;
  const update = raw['nodeStatusUpdateFrequency'] ?? '';
  const isSet = typeof update === 'string' && update !== '' && parseGoDuration(update) !== 0;
  return isSet ? read.nodeStatusUpdateFrequency : 5 * 60_000;
}

function evictionHard(
  set: Readonly<Record<string, string>> | undefined,
  merge: boolean,
): Readonly<Record<string, string>> {
  if (set === undefined) return DEFAULT_EVICTION_HARD;
  return merge ? { ...DEFAULT_EVICTION_HARD, ...set } : set;
}

const SECOND = 1000;

/** What the kubelet's own validation refuses; the types have been checked. */
export function checkConfiguration(config: KubeletConfiguration): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const need = (holds: boolean, path: string, message: string): void => {
    if (!holds) problems.push({ path, message });
  };
  const within = (path: string, value: number, low: number, high: number): void =>
    need(value >= low && value <= high, path, `must be between ${low} and ${high}, not ${value}`);
  const notNegative = (path: string, value: number): void => need(value >= 0, path, `must not be negative: ${value}`);

  within('port', config.port, 1, 65_535);
  within('readOnlyPort', config.readOnlyPort, 0, 65_535);
  within('healthzPort', config.healthzPort, 0, 65_535);
  need(isIP(config.address) !== 0, 'address', `must be an IP address, not "${config.address}"`);
  need(
    (config.tlsCertFile === '') === (config.tlsPrivateKeyFile === ''),
    'tlsCertFile',
    'and tlsPrivateKeyFile must be set together',
  );
  for (const [i, ip] of config.clusterDNS.entries())
    need(isIP(ip) !== 0, `clusterDNS[${i}]`, `must be an IP address, not "${ip}"`);

  need(config.nodeLeaseDurationSeconds > 0, 'nodeLeaseDurationSeconds', 'must be greater than 0');
  need(config.nodeStatusMaxImages >= -1, 'nodeStatusMaxImages', 'must be -1 or greater');
  for (const name of ['syncFrequency', 'fileCheckFrequency', 'nodeStatusUpdateFrequency'] as const)
    need(config[name] > 0, name, 'must be greater than 0');
  for (const name of ['registryPullQPS', 'registryBurst', 'eventRecordQPS', 'eventBurst', 'kubeAPIBurst'] as const)
    notNegative(name, config[name]);
  for (const name of ['maxPods', 'podsPerCore', 'maxOpenFiles'] as const) notNegative(name, config[name]);
  within('oomScoreAdj', config.oomScoreAdj, -1000, 1000);

  within('imageGCHighThresholdPercent', config.imageGCHighThresholdPercent, 0, 100);
  within('imageGCLowThresholdPercent', config.imageGCLowThresholdPercent, 0, 100);
  need(
    config.imageGCLowThresholdPercent < config.imageGCHighThresholdPercent,
    'imageGCLowThresholdPercent',
    `must be less than imageGCHighThresholdPercent (${config.imageGCHighThresholdPercent})`,
  );
  within('cpuCFSQuotaPeriod (ms)', config.cpuCFSQuotaPeriod, 1, SECOND);
  const restart = config.crashLoopBackOff.maxContainerRestartPeriod;
  if (restart !== undefined) within('crashLoopBackOff.maxContainerRestartPeriod (seconds)', restart / SECOND, 1, 300);
  const pulls = config.maxParallelImagePulls;
  if (pulls !== undefined) {
    need(pulls >= 1, 'maxParallelImagePulls', `must be at least 1, not ${pulls}`);
    need(
      !(config.serializeImagePulls && pulls > 1),
      'maxParallelImagePulls',
      'cannot be more than 1 while serializeImagePulls is true',
    );
  }
  need(config.containerLogMaxFiles > 1, 'containerLogMaxFiles', 'must be greater than 1');
  need(config.containerLogMaxWorkers >= 1, 'containerLogMaxWorkers', 'must be at least 1');

  checkTracing(config, need);
  checkReserved(config, need);
  checkEviction(config, need);
  checkShutdown(config, need);
  checkEnforcement(config, need);
  return problems;
}

type Need = (holds: boolean, path: string, message: string) => void;

function checkTracing({ tracing }: KubeletConfiguration, need: Need): void {
  if (tracing === undefined) return;
  const { endpoint, samplingRatePerMillion: rate } = tracing;
  need(rate >= 0, 'tracing.samplingRatePerMillion', `must not be negative: ${rate}`);
  need(rate <= 1_000_000, 'tracing.samplingRatePerMillion', `must be at most one million, not ${rate}`);
  const parsed = tracingEndpoint(endpoint);
  if (endpoint !== '' && 'problem' in parsed) need(false, 'tracing.endpoint', parsed.problem);
}

const RESERVABLE: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pid']);

function checkReserved(config: KubeletConfiguration, need: Need): void {
  for (const name of ['systemReserved', 'kubeReserved'] as const) {
    for (const [resource, amount] of Object.entries(config[name])) {
      const path = `${name}[${resource}]`;
      need(RESERVABLE.has(resource), path, 'is not a resource that can be reserved');
      const parsed = parseQuantity(amount);
      need(parsed !== undefined && parsed >= 0n, path, `must be a quantity of 0 or more, not "${amount}"`);
    }
  }
}

const SIGNALS: ReadonlySet<string> = new Set([
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
]);

/** True for "10%" and for any quantity that is not negative. */
function isThreshold(text: string): boolean {
  if (text.endsWith('%')) {
    const percent = Number(text.slice(0, -1));
    return text.length > 1 && percent >= 0 && percent <= 100;
  }
  const parsed = parseQuantity(text);
  return parsed !== undefined && parsed >= 0n;
}

function checkEviction(config: KubeletConfiguration, need: Need): void {
  for (const name of ['evictionHard', 'evictionSoft', 'evictionMinimumReclaim'] as const) {
    for (const [signal, threshold] of Object.entries(config[name])) {
      need(SIGNALS.has(signal), `${name}[${signal}]`, 'is not an eviction signal');
      need(isThreshold(threshold), `${name}[${signal}]`, `must be a quantity or a percentage, not "${threshold}"`);
    }
  }
  for (const signal of Object.keys(config.evictionSoft)) {
    need(
      Object.hasOwn(config.evictionSoftGracePeriod, signal),
      `evictionSoftGracePeriod[${signal}]`,
      'must be set with evictionSoft',
    );
  }
}

function checkShutdown(config: KubeletConfiguration, need: Need): void {
  const { shutdownGracePeriod: all, shutdownGracePeriodCriticalPods: critical } = config;
  need(critical <= all, 'shutdownGracePeriodCriticalPods', 'must not be longer than shutdownGracePeriod');
  for (const [name, value] of Object.entries({ shutdownGracePeriod: all, shutdownGracePeriodCriticalPods: critical }))
    need(value === 0 || value >= SECOND, name, 'must be 0 or at least 1s');
  need(
    config.shutdownGracePeriodByPodPriority.length === 0 || (all === 0 && critical === 0),
    'shutdownGracePeriodByPodPriority',
    'cannot be set together with shutdownGracePeriod',
  );
}

const ENFORCEMENTS: ReadonlySet<string> = new Set([
  'none',
  '',
  'pods',
  'system-reserved',
  'system-reserved-compressible',
  'kube-reserved',
  'kube-reserved-compressible',
]);

function checkEnforcement(config: KubeletConfiguration, need: Need): void {
  const list = config.enforceNodeAllocatable;
  for (const [i, option] of list.entries())
    need(ENFORCEMENTS.has(option), `enforceNodeAllocatable[${i}]`, `"${option}" is not an enforcement`);
  need(!list.includes('none') || list.length === 1, 'enforceNodeAllocatable', '"none" must stand alone');
  for (const kind of ['system', 'kube'] as const) {
    const cgroup = kind === 'system' ? config.systemReservedCgroup : config.kubeReservedCgroup;
    need(
      !list.some((option) => option.startsWith(`${kind}-reserved`)) || cgroup !== '',
      `${kind}ReservedCgroup`,
      `must be set with the enforcement ${kind}-reserved`,
    );
  }
}
