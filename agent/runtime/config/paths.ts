// Where the adapter's files are: the kubelet's own layout. Pure.

import { join } from 'node:path';

interface Identity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** `/var/log/pods/<namespace>_<name>_<uid>`. */
export function podLogsDirectory(podLogsDir: string, pod: Identity): string {
  return join(podLogsDir, `${pod.namespace}_${pod.name}_${pod.uid}`);
}

/** A container's log, relative to its pod's log directory, CRI's log_path. */
export function containerLogFile(container: string, restartCount: number): string {
  return `${container}/${restartCount}.log`;
}

/** Linux allows 255 bytes in a file name. */
const MAX_FILE_NAME = 255;
const LINK_SUFFIX = '.log';

/** The name of the link in /var/log/containers, from which log shippers read pod, namespace and container. */
export function containerLogLink(pod: Identity, container: string, containerId: string): string {
  const name = `${pod.name}_${pod.namespace}_${container}-${containerId}`;
  return name.slice(0, MAX_FILE_NAME - LINK_SUFFIX.length) + LINK_SUFFIX;
}

export function podDirectory(rootDir: string, uid: string): string {
  return join(rootDir, 'pods', uid);
}

export function hostsFile(rootDir: string, uid: string): string {
  return join(podDirectory(rootDir, uid), 'etc-hosts');
}

/** Directory of one container's termination logs, one file per instance. */
export function containerDirectory(rootDir: string, uid: string, container: string): string {
  return join(podDirectory(rootDir, uid), 'containers', container);
}
