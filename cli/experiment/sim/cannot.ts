// What the simulated world cannot do of an experiment, by name and before anything is started. Pure.

import { completeConfiguration } from '../../../agent/config/kubelet-configuration.ts';
import { isKnownKind } from '../../../labs/sim/cluster.ts';
import { parseCommand, ShellError } from '../../../labs/sim/shell/parse.ts';
import { commandOf } from '../../../labs/sim/shell/processes.ts';
import { UserError } from '../../../lib/errors.ts';
import type { ExperimentStep, Manifest, ProcessName, WorldSpec } from '../model.ts';
import { processProblems } from '../processes.ts';
import { RESOLV_CONF } from './agent-options.ts';

/** Fields of KubeletConfiguration that have their effect in the simulated world. */
export const KUBELET_FIELDS: ReadonlySet<string> = new Set([
  'clusterDNS',
  'clusterDomain',
  'configMapAndSecretChangeDetectionStrategy',
  'crashLoopBackOff',
  'evictionHard',
  'evictionMaxPodGracePeriod',
  'evictionMinimumReclaim',
  'evictionPressureTransitionPeriod',
  'evictionSoft',
  'evictionSoftGracePeriod',
  'featureGates',
  'imageGCHighThresholdPercent',
  'imageGCLowThresholdPercent',
  'imageMaximumGCAge',
  'imageMinimumGCAge',
  'maxParallelImagePulls',
  'maxPods',
  'nodeLeaseDurationSeconds',
  'nodeStatusReportFrequency',
  'nodeStatusUpdateFrequency',
  'resolvConf',
  'runtimeRequestTimeout',
  'serializeImagePulls',
  'shutdownGracePeriod',
  'shutdownGracePeriodByPodPriority',
  'shutdownGracePeriodCriticalPods',
  'syncFrequency',
]);

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function list(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(fields) : [];
}

function texts(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.map(String) : undefined;
}

/** What is wrong with a command; nothing where there is none. */
function commandProblem(where: string, parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (error instanceof ShellError) return [`${where}: ${error.message}`];
    throw error;
  }
}

/** What is there, with every tag that a lab has. */
const IMAGES: ReadonlySet<string> = new Set(['busybox:stable', 'busybox:latest', 'nginx:stable', 'nginx:latest']);
const CAPACITIES: ReadonlySet<string> = new Set(['pods', 'addresses', 'imagefs']);
const VOLUMES = new Set(['name', 'emptyDir', 'configMap', 'secret', 'downwardAPI', 'projected', 'hostPath']);
const HANDLERS = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

function containerProblems(where: string, container: Readonly<Record<string, unknown>>): string[] {
  const { command, args, image, lifecycle, volumeMounts } = container;
  const problems = commandProblem(where, () => commandOf(String(image ?? ''), texts(command), texts(args)));
  const handlers = HANDLERS.map((name): readonly [string, unknown] => [name, container[name]]);
  const { postStart, preStop } = fields(lifecycle);
  for (const [name, given] of [...handlers, ['postStart', postStart] as const, ['preStop', preStop] as const]) {
    const { exec, grpc, httpGet } = fields(given);
    const argv = texts(fields(exec)['command']);
    if (argv !== undefined) problems.push(...commandProblem(`${where} ${name}`, () => parseCommand(argv)));
    if (grpc !== undefined) problems.push(`${where} ${name}: gRPC probes are not simulated`);
    if (httpGet !== undefined && (name === 'postStart' || name === 'preStop')) {
      problems.push(`${where} ${name}: HTTP hooks are not simulated`);
    }
  }
  if (list(volumeMounts).some((mount) => 'subPath' in mount || 'subPathExpr' in mount)) {
    problems.push(`${where}: subPath is not simulated`);
  }
  return problems;
}

function manifestProblems({ kind, metadata, spec }: Manifest): string[] {
  const where = `${kind} ${metadata.name}`;
  if (!isKnownKind(kind)) return [`${where}: objects of kind ${kind} are not simulated`];
  if (kind === 'Service') return serviceProblems(where, fields(spec));
  if (kind !== 'Pod') return [];
  const { containers, initContainers, volumes } = fields(spec);
  const problems = [...list(initContainers), ...list(containers)].flatMap((container) =>
    containerProblems(`${where}, container ${String(container['name'])}`, container),
  );
  for (const volume of list(volumes)) {
    const other = Object.keys(volume).find((key) => !VOLUMES.has(key));
    if (other !== undefined) problems.push(`${where}: volumes of the type ${other} are not simulated`);
  }
  return problems;
}

/** DNS knows services by their address; nothing listens there. */
function serviceProblems(where: string, { clusterIP, type }: Readonly<Record<string, unknown>>): string[] {
  const other = clusterIP === 'None' ? 'headless' : type === 'ExternalName' ? 'of the type ExternalName' : undefined;
  return other === undefined ? [] : [`${where}: services that are ${other} are not simulated`];
}

function stepProblems(step: ExperimentStep): string[] {
  if ('apply' in step) return step.apply.flatMap(manifestProblems);
  if ('exec' in step) return commandProblem(`exec in ${step.exec.pod}`, () => parseCommand(step.exec.command));
  const ofProcess = processProblems(step, missingProcess);
  if (ofProcess.length > 0) return [...ofProcess];
  if ('fault' in step) {
    const { on, rules } = step.fault;
    if (on === 'csi') return ['faults of csi are not simulated'];
    const ofEvents = rules.filter(({ call }) => call.startsWith('event '));
    if (on !== 'cri' && ofEvents.length > 0) return ['only CRI has events that can be lost'];
    if (ofEvents.some(({ action }) => action !== 'drop'))
      return ['an event of the runtime can be dropped, and nothing else'];
    if (on === 'dns') {
      const twice = rules.filter(({ action }) => action === 'duplicate');
      return twice.map(() => 'the fault duplicate of a DNS query is not simulated');
    }
    const wrong =
      on === 'cni' ? rules.filter(({ action }) => action !== 'fail' && action !== 'delay' && action !== 'hang') : [];
    return wrong.map(({ action }) => `the fault ${action} of a CNI plugin is not simulated`);
  }
  if ('use' in step) {
    const { pids, pod } = step.use;
    return [
      ...(pids === undefined ? [] : ['the use of process ids is not simulated']),
      ...(pod === undefined ? [] : ['memory and disk of a pod are used by its own command, not by a step']),
    ];
  }
  if ('patch' in step && step.patch.kind !== 'Node' && !isKnownKind(step.patch.kind))
    return [`objects of kind ${step.patch.kind} are not simulated`];
  if ('delete' in step && !isKnownKind(step.delete.kind))
    return [`objects of kind ${step.delete.kind} are not simulated`];
  return [];
}

function missingProcess(name: ProcessName): string | undefined {
  return ['agent', 'containerd', 'apiserver'].includes(name) ? undefined : 'the simulated world has no such process';
}

function specProblems({ kubelet = {}, nodes = 1, images = [], csi, cni, capacity = {} }: WorldSpec): string[] {
  const problems = Object.keys(kubelet)
    .filter((field) => !KUBELET_FIELDS.has(field))
    .map((field) => `world.kubelet.${field} has no effect in the simulated world`);
  try {
    completeConfiguration(kubelet, 'world.kubelet');
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    problems.push(error.message);
  }
  if (nodes !== 1) problems.push(`world.nodes: the simulated world has one node, not ${nodes}; so has a lab`);
  problems.push(
    ...images
      .filter((image) => !IMAGES.has(image.replace(/^docker\.io\/(library\/)?/, '')))
      .map((image) => `world.images: the simulated world has ${[...IMAGES].join(', ')}, not ${image}`),
  );
  const { resolvConf = RESOLV_CONF } = kubelet;
  if (resolvConf !== RESOLV_CONF && resolvConf !== '') {
    problems.push(`world.kubelet.resolvConf: the simulated machine has ${RESOLV_CONF}, or '' for none`);
  }
  if (csi === true) problems.push('the CSI driver is not simulated');
  if (cni !== undefined) problems.push('another CNI configuration is not simulated');
  const others = Object.keys(capacity).filter((name) => !CAPACITIES.has(name));
  problems.push(
    ...others.map(
      (name) => `world.capacity.${name}: the simulated machine has 4 CPUs, 8 GiB of memory and 10 GiB of disk`,
    ),
  );
  return problems;
}

/** One line for each. */
export function simCannot(spec: WorldSpec, steps: readonly ExperimentStep[]): readonly string[] {
  return [...specProblems(spec), ...steps.flatMap(stepProblems)];
}
