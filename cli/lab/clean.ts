// Takes everything of a lab off the machine, from any state: processes that were killed, files that are missing, an API
// server and a containerd that are gone. Every step looks at what is there and needs none of the others to have
// worked; running it again does nothing. Asks nobody's cooperation: the orderly way is up.ts's.

import { readdir, readFile, readlink, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemdRuns } from '../../agent/node/systemd-slices.ts';
import { type CgroupLayout, cgroupPath, kubepodsName } from '../../agent/ports/cgroup-names.ts';
import { cleanupChains, releaseAllAttachments } from '../../cni/cleanup.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { Tracer } from '../../lib/trace.ts';
import { endProcess } from './child.ts';
import { otherClaims, withdrawClaim } from './claims.ts';
import { type ContainerdPaths, clearContainerd } from './containerd.ts';
import { removeNetworkRules } from './firewall.ts';
import { detachLoopsBelow, thawBelow } from './loops.ts';
import { readMounts, unmountBelow } from './mounts.ts';
import type { LabPaths } from './paths.ts';
import { labProcesses } from './processes.ts';
import { rootEntries, strangers, strangersSentence } from './root.ts';
import { readLabState } from './state.ts';

export interface CleanOptions {
  readonly paths: LabPaths;
  /** Keep certificates, the API server's store, images and logs for the next `up`. */
  readonly keep?: boolean;
  readonly clock?: Clock;
}

export function labContainerdPaths(paths: LabPaths): ContainerdPaths {
  return {
    ...paths.containerd,
    logFile: paths.logFile('containerd'),
    pidFile: paths.pidFile('containerd'),
  };
}

/** Returns what could not be cleaned, one line each; empty when nothing of the lab is left. */
export async function cleanLab(options: CleanOptions): Promise<readonly string[]> {
  const { paths, clock = systemClock } = options;
  const problems: string[] = [];
  const step = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      // One step that fails must not keep the others from their part.
      problems.push(`${what}: ${errorMessage(error)}`);
    }
  };
  await step('processes', () => endLabProcesses(paths, clock));
  await step('network attachments', () => releaseAttachments(paths, clock));
  await step('containerd', () => clearContainerd(labContainerdPaths(paths), clock));
  await step('cached network results', () => removeCachedResults(paths.runDir));
  await step('links', () => removeLinks(paths.bridge));
  await step('firewall rules', () => removeNetworkRules(paths.networkName));
  await step('claim', () => withdrawClaim(paths.runDir));
  await step('firewall chains', async () => {
    const state = await readLabState(paths);
    // A plugin of another lab may be about to use what is idle now.
    if (state !== undefined && (await isLast(paths))) await cleanupChains(state.firewall);
  });
  await step('cgroups', async () => {
    const state = await readLabState(paths);
    await removeCgroups({ root: paths.cgroupRoot, driver: state?.cgroupDriver ?? 'cgroupfs' }, clock);
  });
  const foreign = await strangers(paths);
  if (foreign.length > 0) problems.push(`${strangersSentence(paths, foreign)}: it is left as it is`);
  else await clearRoot(paths, options.keep === true, step);
  // Last: it holds the lock.
  await step('run directory', () => removeRunDirectory(paths.runDir));
  return problems;
}

/** What the lab has under its root, and nothing else that may be there. */
async function clearRoot(
  paths: LabPaths,
  keep: boolean,
  step: (what: string, work: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const { volatile, persistent } = rootEntries(paths);
  const own = [...volatile, ...persistent];
  await step('filesystems', () => forEach(own, thawBelow));
  await step('mounts', () => unmountBelow([...own, paths.runDir]));
  await step('loop devices', () => forEach(own, detachLoopsBelow));
  await step('pod logs', () => removePodLogs(paths));
  await step('files', () => removeFiles(paths, keep));
}

async function forEach(paths: readonly string[], work: (path: string) => Promise<void>): Promise<void> {
  for (const path of paths) await work(path);
}

async function removeRunDirectory(runDir: string): Promise<void> {
  await unmountBelow([runDir]);
  await removeTree(runDir);
  await removeEmpty(dirname(runDir));
}

async function isLast(paths: LabPaths): Promise<boolean> {
  return (await otherClaims(paths.hash)).length === 0;
}

/** Everything that carries the lab's mark, children of the dead ones too: agent and servers first, then the rest. */
async function endLabProcesses(paths: LabPaths, clock: Clock): Promise<void> {
  const own = await labProcesses(paths.root);
  const programs = own.filter((entry) => entry.argv.some((word) => word.endsWith('cli/main.ts')));
  await Promise.all(programs.map((entry) => endProcess(entry, clock, 3_000)));
  // Containers and shims go with containerd; what is neither (a CNI plugin, an exec) ends here.
  const rest = (await labProcesses(paths.root)).filter(
    (entry) => !['containerd', 'containerd-shim'].includes(entry.comm) && !/^(runc|containerd-s)/.test(entry.comm),
  );
  await Promise.all(rest.map((entry) => endProcess(entry, clock, 1_000)));
}

async function releaseAttachments(paths: LabPaths, clock: Clock): Promise<void> {
  const report = await releaseAllAttachments({
    cacheDir: paths.cni.cacheDir,
    binDirs: [paths.cni.binDir],
    tracer: new Tracer(),
    clock,
  });
  // Named, though the steps after this one take most of it away all the same.
  if (report.failures.length > 0) throw new Error(report.failures.map(errorMessage).join('; '));
}

/** Where containerd's own CNI library remembers results, of every containerd on the machine. */
const RESULTS_DIR = '/var/lib/cni/results';

/** A containerd that was killed forgets to forget: its results are known by their network namespaces' paths. */
async function removeCachedResults(runDir: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(RESULTS_DIR);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  for (const name of names) {
    const file = join(RESULTS_DIR, name);
    try {
      if ((await readFile(file, 'utf8')).includes(`"${runDir}/`)) await rm(file, { force: true });
    } catch (error) {
      // Another containerd's, that went while we looked.
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }
}

/** The lab's bridge and what is plugged into it. A veth goes with its namespace too, but later than we look. */
async function removeLinks(bridge: string): Promise<void> {
  const shown = await exec('ip', ['-json', 'link', 'show', 'master', bridge]);
  // ip says nothing for a bridge without ports, and fails for one that does not exist.
  const ports: unknown = shown.code === 0 && shown.stdout.trim() !== '' ? JSON.parse(shown.stdout) : [];
  if (Array.isArray(ports)) {
    for (const port of ports) {
      if (typeof port === 'object' && port !== null && 'ifname' in port && typeof port.ifname === 'string') {
        // It may vanish with its namespace at this very moment.
        await exec('ip', ['link', 'delete', port.ifname]);
      }
    }
  }
  if ((await exec('ip', ['link', 'show', bridge])).code === 0) await execOk('ip', ['link', 'delete', bridge]);
}

/** The highest cgroup that is the lab's alone: its own root cgroup where it has one, else `kubepods`. */
function topCgroup(layout: CgroupLayout): string {
  const name = kubepodsName(layout);
  return cgroupPath(layout, name.length > 1 ? name.slice(0, -1) : name);
}

/** For giving up only. */
const CGROUP_MS = 30_000;

/** Empty cgroups from the top that is the lab's, and the slices that systemd knows them as. */
async function removeCgroups(layout: CgroupLayout, clock: Clock): Promise<void> {
  const path = topCgroup(layout);
  if (layout.driver === 'systemd' && systemdRuns()) {
    // Takes every slice and scope below with it. 5: it is not loaded.
    const stopped = await exec('systemctl', ['stop', basename(path)], { timeoutMs: 60_000 });
    if (stopped.code !== 0 && stopped.code !== 5) throw new Error(`systemctl stop: ${stopped.stderr.trim()}`);
  }
  const hierarchies = (await readMounts()).filter((mount) => mount.type === 'cgroup' || mount.type === 'cgroup2');
  const tops = [...new Set(hierarchies.map((mount) => mount.mountPoint))].map((mount) => join(mount, path));
  // The kernel lets go of a dead process a moment after it is gone.
  const deadline = clock.monotonic() + CGROUP_MS;
  for (const top of tops) {
    let left = await removeCgroupTree(top);
    while (left !== undefined && clock.monotonic() < deadline) {
      await clock.sleep(20);
      left = await removeCgroupTree(top);
    }
    if (left !== undefined) throw new Error(`${left} still has processes in it`);
  }
}

/** Removes a tree of cgroups from the leaves; returns one that is busy, or undefined. */
async function removeCgroupTree(directory: string): Promise<string | undefined> {
  let children: string[];
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    children = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  let busy: string | undefined;
  for (const child of children) busy = (await removeCgroupTree(join(directory, child))) ?? busy;
  if (busy !== undefined) return busy;
  try {
    await rmdir(directory);
    return undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    if (isErrno(error, 'EBUSY')) return directory;
    throw error;
  }
}

async function listDirectory(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Logs in the machine's shared places: only those of pods that this lab's agent has a directory for. */
async function removePodLogs(paths: LabPaths): Promise<void> {
  const uids = await listDirectory(join(paths.kubeletDir, 'pods'));
  for (const name of await listDirectory(paths.podLogsDir)) {
    if (uids.some((uid) => name.endsWith(`_${uid}`))) {
      await removeTree(join(paths.podLogsDir, name));
    }
  }
  for (const name of await listDirectory(paths.containerLogsDir)) {
    const link = join(paths.containerLogsDir, name);
    if (await dangles(link, paths.podLogsDir)) await rm(link, { force: true });
  }
}

/** A link whose log directory under `logs` is gone. */
async function dangles(link: string, logs: string): Promise<boolean> {
  try {
    const target = await readlink(link);
    return target.startsWith(`${logs}/`) && (await listDirectory(dirname(target))).length === 0;
  } catch (error) {
    if (isErrno(error, 'EINVAL', 'ENOENT')) return false;
    throw error;
  }
}

async function removeFiles(paths: LabPaths, keep: boolean): Promise<void> {
  const state = await readLabState(paths);
  const { volatile, persistent } = rootEntries(paths);
  for (const path of [...volatile, ...(keep ? [] : persistent)]) await removeTree(path);
  const shared = (await isLast(paths)) ? (state?.madeDirectories ?? []) : [];
  const empty = [...shared];
  if (!keep && (state?.madeRoot ?? paths.isDefaultRoot)) empty.push(paths.root);
  for (const path of empty) await removeEmpty(path);
}

async function removeEmpty(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    // Another lab's, or somebody's files are in it; or it was made a mount point, as `ip netns add` does.
    if (!isErrno(error, 'ENOTEMPTY', 'ENOENT', 'EBUSY')) throw error;
  }
}
