// The files around a pod that the adapter owns: etc-hosts, termination logs, log directories and the links that log
// shippers follow. It makes them before the runtime needs them and removes them with the container or the pod.
// File calls are synchronous on purpose: each takes some 20 µs, a trip through the thread pool costs more.

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { isErrno, withPath } from '../../lib/errors.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import type { PodRef } from '../ports/runtime.ts';
import { parseResolvConf, type ResolvConf } from './config/dns.ts';
import { hostsFileText } from './config/hosts-file.ts';
import {
  containerDirectory,
  containerLogFile,
  containerLogLink,
  hostsFile,
  podDirectory,
  podLogsDirectory,
} from './config/paths.ts';
import type { ContainerFileNames } from './convert.ts';
import type { NodeSettings } from './options.ts';

type FileSettings = Pick<NodeSettings, 'rootDir' | 'podLogsDir' | 'containerLogsDir' | 'clusterDomain' | 'resolvConf'>;

/** Runs `body` and takes any of `codes` for success. */
function allowing<T>(codes: readonly string[], body: () => T): T | undefined {
  try {
    return body();
  } catch (error) {
    if (isErrno(error, ...codes)) return undefined;
    throw error;
  }
}

/** Replaces a file's content and keeps its inode. It is never emptied first: a full disk would leave it so. */
function writeInPlace(path: string, text: string, mode: number): void {
  const bytes = Buffer.from(text);
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT, mode);
  try {
    const written = writeSync(descriptor, bytes, 0, bytes.length, 0);
    if (written < bytes.length)
      throw Object.assign(new Error('ENOSPC: the file is written in part'), { code: 'ENOSPC' });
    ftruncateSync(descriptor, bytes.length);
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(descriptor);
  }
}

export class PodFiles {
  readonly #settings: FileSettings;
  readonly #nodeHostsPath: string;

  constructor(settings: FileSettings, nodeHostsPath = '/etc/hosts') {
    this.#settings = settings;
    this.#nodeHostsPath = nodeHostsPath;
  }

  /** The node's resolv.conf; undefined when pods are to inherit none. */
  resolvConf(): ResolvConf | undefined {
    const path = this.#settings.resolvConf;
    return path === '' ? undefined : parseResolvConf(readFileSync(path, 'utf8'));
  }

  logDirectory(pod: PodRef): string {
    return podLogsDirectory(this.#settings.podLogsDir, pod);
  }

  logPath(pod: PodRef, container: string, restartCount: number): string {
    return join(this.logDirectory(pod), containerLogFile(container, restartCount));
  }

  makeLogDirectory(pod: PodRef): void {
    mkdirSync(this.logDirectory(pod), { recursive: true, mode: 0o755 });
  }

  /** Takes the log directory of a pod away that never had a container; one that holds logs stays. */
  removeEmptyLogDirectory(pod: PodRef): void {
    allowing(['ENOENT', 'ENOTEMPTY', 'EEXIST'], () => rmdirSync(this.logDirectory(pod)));
  }

  /**
   * Makes the directory of a container's logs. Returns the restart count that a container without known instances starts from:
   * above what the logs there are named by, so that none is written to twice.
   */
  makeContainerLogDirectory(pod: PodRef, container: string): number {
    const directory = join(this.logDirectory(pod), container);
    const made = mkdirSync(directory, { recursive: true, mode: 0o755 });
    if (made !== undefined) return 0;
    const counts = readdirSync(directory).flatMap((file) => /^(\d+)\.log(\.|$)/.exec(file)?.[1] ?? []);
    return Math.max(0, ...counts.map((count) => Number(count) + 1));
  }

  /**
   * Writes the pod's hosts file and returns its path; undefined for a pod on its own network without an address.
   * Written in place: containers have this very inode mounted.
   */
  writeHosts(pod: Pod, podIPs: readonly string[]): string | undefined {
    if (podIPs.length === 0 && pod.spec.hostNetwork !== true) return undefined;
    const path = hostsFile(this.#settings.rootDir, pod.metadata.uid);
    const text = hostsFileText(pod, podIPs, {
      clusterDomain: this.#settings.clusterDomain,
      nodeHosts: pod.spec.hostNetwork === true ? readFileSync(this.#nodeHostsPath, 'utf8') : '',
    });
    if (allowing(['ENOENT'], () => readFileSync(path, 'utf8')) === text) return path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
    writeInPlace(path, text, 0o644);
    return path;
  }

  /** A fresh, empty termination log that any user in the container may write. */
  makeTerminationLog(uid: string, container: string): string {
    const directory = containerDirectory(this.#settings.rootDir, uid, container);
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    const path = join(directory, randomBytes(4).toString('hex'));
    writeFileSync(path, '', { mode: 0o666, flag: 'wx' });
    // The umask may have taken bits away.
    chmodSync(path, 0o666);
    return path;
  }

  /** Points /var/log/containers/<pod>_<ns>_<container>-<id>.log at the log. */
  linkLog(pod: PodRef, container: string, containerId: string, restartCount: number): void {
    mkdirSync(this.#settings.containerLogsDir, { recursive: true, mode: 0o755 });
    const link = join(this.#settings.containerLogsDir, containerLogLink(pod, container, containerId));
    allowing(['EEXIST'], () => symlinkSync(this.logPath(pod, container, restartCount), link));
  }

  /** Removes a dead instance's log with its rotated files, its link, and its termination log. */
  removeContainer(pod: PodRef, container: ContainerFileNames): void {
    const link = join(this.#settings.containerLogsDir, containerLogLink(pod, container.name, container.id));
    allowing(['ENOENT'], () => unlinkSync(link));
    if (container.logPath !== '') {
      const directory = dirname(container.logPath);
      const name = basename(container.logPath);
      for (const file of allowing(['ENOENT'], () => readdirSync(directory)) ?? []) {
        if (file === name || file.startsWith(`${name}.`)) allowing(['ENOENT'], () => unlinkSync(join(directory, file)));
      }
    }
    // Only a file of ours: a mount at that path may be a volume of the user.
    const ours = containerDirectory(this.#settings.rootDir, pod.uid, container.name);
    if (container.terminationLog !== undefined && dirname(container.terminationLog) === ours) {
      const path = container.terminationLog;
      allowing(['ENOENT'], () => unlinkSync(path));
    }
  }

  /** Removes everything of a pod whose sandboxes are gone. Leaves pods/<uid> itself when it contains other files. */
  async removePod(pod: PodRef): Promise<void> {
    const logs = this.logDirectory(pod);
    const prefix = `${pod.name}_${pod.namespace}_`;
    for (const file of allowing(['ENOENT'], () => readdirSync(this.#settings.containerLogsDir)) ?? []) {
      if (!file.startsWith(prefix)) continue;
      const link = join(this.#settings.containerLogsDir, file);
      const target = allowing(['ENOENT', 'EINVAL'], () => readlinkSync(link));
      if (target?.startsWith(`${logs}/`)) allowing(['ENOENT'], () => unlinkSync(link));
    }
    // Small, and on the way of every pod's end; the volume manager reads the mount table for what is mounted.
    await removeTree(logs, { withoutTable: true });
    const root = podDirectory(this.#settings.rootDir, pod.uid);
    rmSync(hostsFile(this.#settings.rootDir, pod.uid), { force: true });
    for (const name of ['userns', 'userns.tmp']) rmSync(join(root, name), { force: true });
    await removeTree(join(root, 'containers'), { withoutTable: true });
    allowing(['ENOENT', 'ENOTEMPTY', 'EEXIST'], () => rmdirSync(root));
  }
}
