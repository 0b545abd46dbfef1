// What Docker says of a container as CRI's messages: state, exit code and reason, times in ns. Pure.

import type { ContainerInspectInfo } from 'dockerode';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { Container } from '../../proto/gen/runtime/v1/Container.ts';
import type { ContainerState__Output } from '../../proto/gen/runtime/v1/ContainerState.ts';
import type { ContainerStatus } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { LinuxContainerResources } from '../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { ContainerRecord } from '../records.ts';

/** containerd's code and reason of a container whose process could not be started. */
const START_ERROR_CODE = 128;
const START_ERROR = 'StartError';

type State = ContainerInspectInfo['State'];

/** Docker's times have nanoseconds, which a Date has not; its zero time is CRI's 0. */
export function nanosOf(time: string): string {
  const match = /^(.*?)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/.exec(time);
  if (match === null || time.startsWith('0001-')) return '0';
  const [, seconds = '', fraction = '', zone = ''] = match;
  const ms = parseRfc3339(`${seconds}${zone}`);
  return ms === undefined ? '0' : `${ms / 1000}${fraction.padEnd(9, '0')}`;
}

/** A container that Docker could not start stays "created" there, with the error: for CRI it has exited. */
const startFailed = (state: State): boolean => state.Status === 'created' && state.Error !== '';

export function containerState(state: State): ContainerState__Output {
  if (startFailed(state)) return 'CONTAINER_EXITED';
  return listedState(state.Status);
}

/** From the one word of a list. */
export function listedState(status: string): ContainerState__Output {
  switch (status) {
    case 'created':
      return 'CONTAINER_CREATED';
    case 'running':
    case 'paused':
    case 'restarting':
      return 'CONTAINER_RUNNING';
    case 'exited':
    case 'dead':
    case 'removing':
      return 'CONTAINER_EXITED';
    default:
      return 'CONTAINER_UNKNOWN';
  }
}

/** Exit code, and containerd's reason for it. `oomKilled`: it was killed for memory, though Docker may not know it. */
export function endOf(
  state: State,
  oomKilled = false,
): { readonly exit_code: number; readonly reason: string; readonly message: string } {
  if (startFailed(state)) return { exit_code: START_ERROR_CODE, reason: START_ERROR, message: state.Error };
  if (containerState(state) !== 'CONTAINER_EXITED') return { exit_code: 0, reason: '', message: '' };
  const reason = state.OOMKilled || oomKilled ? 'OOMKilled' : state.ExitCode === 0 ? 'Completed' : 'Error';
  return { exit_code: state.ExitCode, reason, message: state.Error };
}

export function listedContainer(
  id: string,
  record: ContainerRecord,
  imageId: string,
  state: ContainerState__Output,
): Container {
  return {
    id,
    pod_sandbox_id: record.sandboxId,
    metadata: record.metadata,
    image: record.image,
    image_ref: record.imageRef,
    image_id: imageId,
    state,
    created_at: record.createdAt,
    labels: record.labels,
    annotations: record.annotations,
  };
}

/** The limits in force: those of an update too. */
function resourcesOf({ HostConfig: host }: ContainerInspectInfo): LinuxContainerResources {
  return {
    cpu_shares: host.CpuShares ?? 0,
    cpu_quota: host.CpuQuota ?? 0,
    cpu_period: host.CpuPeriod ?? 0,
    memory_limit_in_bytes: host.Memory ?? 0,
    memory_swap_limit_in_bytes: Math.max(host.MemorySwap ?? 0, 0),
    oom_score_adj: host.OomScoreAdj ?? 0,
    cpuset_cpus: host.CpusetCpus ?? '',
    cpuset_mems: host.CpusetMems ?? '',
  };
}

export function containerStatus(
  inspected: ContainerInspectInfo,
  record: ContainerRecord,
  oomKilled: boolean,
): ContainerStatus {
  const { State: state } = inspected;
  const shown = containerState(state);
  const listed = listedContainer(inspected.Id, record, inspected.Image, shown);
  const { pod_sandbox_id: _sandbox, ...common } = listed;
  const failed = startFailed(state);
  return {
    ...common,
    started_at: shown === 'CONTAINER_CREATED' || failed ? '0' : nanosOf(state.StartedAt),
    // Docker has no time for a start that failed: it was made, and failed, a moment later.
    finished_at: shown !== 'CONTAINER_EXITED' ? '0' : failed ? record.createdAt : nanosOf(state.FinishedAt),
    ...endOf(state, oomKilled),
    mounts: [...record.mounts],
    log_path: record.logPath,
    resources: { linux: resourcesOf(inspected) },
    stop_signal: record.stopSignal,
  };
}
