// What several exercises ask about pods: read once from the API and the runtime, decided from plain objects. The reading
// functions are at the end; all others are pure.

import { readFile } from 'node:fs/promises';
import { isPodReady } from '../../agent/model/pod-ready.ts';
import { isRuntimeError } from '../../agent/runtime/cri-client.ts';
import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Container, ContainerStatus, Pod } from '../../client/types.ts';
import { isErrno } from '../../lib/errors.ts';
import { type Finding, finding, type Machine } from './model.ts';

/** The pod of that name that is not being deleted. */
export function findPod(pods: readonly Pod[], name: string): Pod | undefined {
  return pods.find(({ metadata }) => metadata.name === name && metadata.deletionTimestamp === undefined);
}

export function mainStatus(pod: Pod | undefined): ContainerStatus | undefined {
  return pod?.status?.containerStatuses?.[0];
}

export function mainContainer(pod: Pod | undefined): Container | undefined {
  return pod?.spec.containers[0];
}

/** As the column STATUS of `kubectl get pods`, with what is in the way. */
export function podState(pod: Pod | undefined): string {
  if (pod === undefined) return 'there is no such pod';
  const status = mainStatus(pod);
  const waiting = status?.state?.waiting;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  const restarts = status?.restartCount ?? 0;
  const after = restarts === 0 ? '' : `, ${restarts} ${restarts === 1 ? 'restart' : 'restarts'}`;
  if (scheduled?.status === 'False') return `Pending: ${scheduled.message ?? scheduled.reason ?? 'not scheduled'}`;
  if (waiting !== undefined) return `${waiting.reason ?? 'waiting'}${after}`;
  const ended = status?.state?.terminated;
  if (ended !== undefined) return `${ended.reason ?? 'terminated'} (exit ${ended.exitCode})${after}`;
  return `${pod.status?.phase ?? 'Pending'}, ${isPodReady(pod) ? 'Ready' : 'not Ready'}${after}`;
}

/** The pod exists and is Ready. */
export function readyFinding(pods: readonly Pod[], name: string, missing = `pod ${name} is to become Ready`): Finding {
  const pod = findPod(pods, name);
  return finding(`pod ${name}`, podState(pod), pod !== undefined && isPodReady(pod), missing);
}

/** The container's process has the variable with a value that `accept` wants. */
export function variableFinding(
  environ: readonly string[] | undefined,
  name: string,
  accept: (value: string) => boolean,
  missing: string,
): Finding {
  const value = environ?.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
  const found = environ === undefined ? 'no process runs' : value === undefined ? `no ${name}` : `${name}=${value}`;
  return finding(
    'environment of the container’s process (/proc/PID/environ)',
    found,
    value !== undefined && accept(value),
    missing,
  );
}

/** The pid in what a runtime answers to a verbose ContainerStatus. */
export function pidOf(info: Readonly<Record<string, string>> | undefined): number | undefined {
  const text = new Map(Object.entries(info ?? {})).get('info');
  if (text === undefined) return undefined;
  const parsed: unknown = JSON.parse(text);
  const pid = typeof parsed === 'object' && parsed !== null && 'pid' in parsed ? parsed.pid : undefined;
  return typeof pid === 'number' && pid > 0 ? pid : undefined;
}

// ---------------------------------------------------------------- reading

export async function listPods({ client, namespace }: Machine): Promise<readonly Pod[]> {
  return (await client.list<Pod>(resourcePath('v1', 'pods', { namespace }))).items;
}

/** Undefined when it is not there. */
export async function getObject<T>(machine: Machine, plural: string, name: string): Promise<T | undefined> {
  try {
    return await machine.client.get<T>(resourcePath('v1', plural, { namespace: machine.namespace, name }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The pid of the first container's process on this machine; undefined while none runs. */
export async function mainPid(machine: Machine, pod: Pod | undefined): Promise<number | undefined> {
  const status = mainStatus(pod);
  const id = status?.containerID?.replace(/^\w+:\/\//, '');
  if (id === undefined || status?.state?.running === undefined) return undefined;
  try {
    const answer = await machine.cri.call('ContainerStatus', { container_id: id, verbose: true });
    return pidOf(answer.info);
  } catch (error) {
    // It has ended and been removed since its pod was read.
    if (isRuntimeError(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

/** A file below /proc/PID; undefined when the process is gone. */
export async function readOfProcess(pid: number | undefined, file: string): Promise<string | undefined> {
  if (pid === undefined) return undefined;
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EINVAL')) return undefined;
    throw error;
  }
}

/** Lines NAME=value; undefined when the process is gone. */
export async function readEnviron(pid: number | undefined): Promise<readonly string[] | undefined> {
  const text = await readOfProcess(pid, 'environ');
  return text?.split('\0').filter((line) => line !== '');
}
