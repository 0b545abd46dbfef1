// Removes everything of a lab from the machine, in any state: processes that were killed, files that are missing, an API
// server and a containerd that are gone. Every step reads the present state and needs none of the others; all are
// idempotent. Under the root the marker decides what is removed; elsewhere names that only this lab has. Needs no running
// component; the orderly shutdown is up.ts's.

import { readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cleanupChains, releaseAllAttachments } from '../../cni/cleanup.ts';
import { clearDockerState } from '../../labs/docker/dockerd.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { Tracer } from '../../lib/trace.ts';
import { tracedExec } from '../../lib/traced-exec.ts';
import { CLAIM_FILE, otherClaims, readClaim, withdrawClaim } from './claims.ts';
import { cgroupDirectories, removeCgroups, topCgroup } from './clean-cgroups.ts';
import { clearRoot, removeEmpty, removeMarker } from './clean-root.ts';
import { type ContainerdPaths, clearContainerd } from './containerd.ts';
import { removeNetworkRules } from './firewall.ts';
import { type LabMarker, MarkerFile } from './marker.ts';
import { removeLabPolicies } from './netpol.ts';
import { nodePaths, nodesCgroup } from './node/plan.ts';
import { classifyRoot, unprovenMessage } from './ownership.ts';
import type { LabPaths } from './paths.ts';
import { labProcesses } from './processes.ts';
import { protectedBecause, protectionFacts } from './protected.ts';
import { removeLabProxy } from './proxy-claim.ts';
import { exists, rootFacts } from './root.ts';
import { type LabState, readLabState } from './state.ts';

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
  const { paths, clock = systemClock, keep = false } = options;
  const problems: string[] = [];
  const step = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      // A failing step must not stop the others.
      problems.push(`${what}: ${errorMessage(error)}`);
    }
  };
  const { marker, because } = await provenRoot(paths);
  let state: LabState | undefined;
  if (marker !== undefined) {
    await step('state', async () => {
      state = await readLabState(paths);
    });
  }
  if (marker?.has(paths.exercisesDir) === true) {
    // Only then are their modules needed.
    await step('exercises', async () => (await import('../exercises/leave.ts')).leaveExercises(paths));
  }
  await step('processes', () => endLabProcesses(paths, clock));
  if (marker?.has(join(paths.root, 'cni')) === true) {
    await step('network attachments', () => releaseAttachments(paths, clock));
  }
  await step('docker', () => clearDockerState(paths.docker.state));
  const nodes = await nodeDirectories(paths);
  await Promise.all(
    [paths, ...nodes].map((place) => step('containerd', () => clearLabContainerd(paths, place, clock))),
  );
  await step('cached network results', () => removeCachedResults(paths.runDir));
  await step('links', () => removeLinks(paths.bridge));
  await step('firewall rules', () => removeNetworkRules(paths.networkName));
  await step('rules of services', () => removeLabProxy(paths.networkName));
  await step('network policies', () => removeLabPolicies(paths.hash));
  const ownRunDir = await hasOwnRunDirectory(paths);
  if (ownRunDir) await step('claim', () => withdrawClaim(paths.runDir));
  await step('firewall chains', async () => {
    // A plugin of another lab may be about to use what is idle now.
    if (state !== undefined && (await isLast(paths)))
      await cleanupChains(state.firewall, tracedExec(new Tracer(), 'netfilter', exec));
  });
  const gone = new Set<string>();
  for (const path of ownCgroups(paths, marker?.marker)) {
    await step('cgroups', async () => {
      await removeCgroups(path, clock);
      gone.add(path);
    });
  }
  if (marker === undefined) {
    if (because !== undefined) problems.push(because);
  } else {
    // Read again: the programs may have mounted and made more until they ended.
    const cleaned = await clearRoot({ paths, facts: await rootFacts(paths), marker, keep, step });
    problems.push(...cleaned.left);
    for (const path of cleaned.gone) gone.add(path);
    await step('shared directories', () => removeShared(paths, marker.marker));
  }
  if (ownRunDir) await step('run directory', () => removeRunDirectory(paths.runDir));
  if (marker !== undefined) {
    // Anything made under one of these names from now on is not the lab's.
    const done = !keep && problems.length === 0;
    await step('marker', () => (done ? removeMarker(paths, marker) : marker.forget(gone)));
  }
  return problems;
}

/** The marker that proves the root to be a lab's; or why the content is left; undefined for an empty root. */
async function provenRoot(paths: LabPaths): Promise<{ readonly marker?: MarkerFile; readonly because?: string }> {
  const ownership = classifyRoot(await rootFacts(paths), paths.stateFile);
  if (ownership.kind === 'nothing') return {};
  if (ownership.kind === 'unproven') return { because: unprovenMessage(paths.root, ownership) };
  const protection = protectedBecause(await protectionFacts(paths.root));
  if (protection !== undefined) return { because: `${paths.root} ${protection}: nothing in it is touched` };
  return { marker: MarkerFile.of(ownership.marker) };
}

/** What is recognisable as the lab's without its marker, for the output before its removal; one phrase each. */
export async function provenByItself(paths: LabPaths): Promise<readonly string[]> {
  const found: string[] = [];
  const processes = await labProcesses(paths.root);
  if (processes.length > 0) {
    found.push(`processes ${processes.map((entry) => `${entry.pid} (${entry.comm})`).join(', ')}`);
  }
  if ((await exec('ip', ['link', 'show', paths.bridge])).code === 0) found.push(`the bridge ${paths.bridge}`);
  for (const path of ownCgroups(paths, undefined)) {
    if ((await cgroupDirectories(path)).length > 0) found.push(`the cgroup ${path}`);
  }
  if ((await exists(join(paths.runDir, CLAIM_FILE))) && (await hasOwnRunDirectory(paths))) {
    found.push(`its claim and its run directory ${paths.runDir}`);
  }
  return found;
}

/** The run directory bears the hash of the root's path. Another root with the same hash has claimed it by name. */
async function hasOwnRunDirectory(paths: LabPaths): Promise<boolean> {
  try {
    const claim = await readClaim(paths.runDir);
    return claim?.root === undefined || claim.root === paths.root;
  } catch (error) {
    // A damaged claim counts as this lab's.
    if (error instanceof SyntaxError) return true;
    throw error;
  }
}

async function removeRunDirectory(runDir: string): Promise<void> {
  await unmountBelow([runDir]);
  await removeTree(runDir);
  await removeEmpty(dirname(runDir));
}

async function isLast(paths: LabPaths): Promise<boolean> {
  return (await otherClaims(paths.hash)).length === 0;
}

async function removeShared(paths: LabPaths, marker: LabMarker): Promise<void> {
  if (!(await isLast(paths))) return;
  for (const { kind, path } of marker.made) if (kind === 'shared-directory') await removeEmpty(path);
}

/** Those on the list. Without one, those that bear the hash of the root's path, as each driver calls them. Pure. */
function ownCgroups(paths: LabPaths, marker: LabMarker | undefined): readonly string[] {
  if (marker !== undefined) return marker.made.filter(({ kind }) => kind === 'cgroup').map(({ path }) => path);
  // `kubepods` may be a kubelet's.
  if (paths.isDefaultRoot) return [nodesCgroup(paths)];
  return (['cgroupfs', 'systemd'] as const).map((driver) => topCgroup({ root: paths.cgroupRoot, driver }));
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

/** Of a lab with several nodes, the nodes that have been started. */
async function nodeDirectories(paths: LabPaths): Promise<readonly LabPaths[]> {
  try {
    return (await readdir(paths.nodesRunDir)).map((name) => nodePaths(paths, name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** The lab's own, or that of one of its nodes. What it has below the root goes with the root. */
async function clearLabContainerd(lab: LabPaths, place: LabPaths, clock: Clock): Promise<void> {
  const own = new Set((await labProcesses(lab.root)).map((entry) => entry.pid));
  const containerd = labContainerdPaths(place);
  await clearContainerd(containerd, clock, {
    isOwn: (entry) => own.has(entry.pid),
    mountsBelow: [containerd.state],
  });
}

async function releaseAttachments(paths: LabPaths, clock: Clock): Promise<void> {
  const failures: unknown[] = [];
  // Docker's shim runs CNI with --network=runtime; else its results are those of the agent's plugin, which is gone.
  const docker = (await readLabState(paths))?.network === 'runtime' ? [paths.docker.cniCacheDir] : [];
  for (const cacheDir of [paths.cni.cacheDir, ...docker]) {
    const report = await releaseAllAttachments({ cacheDir, binDirs: [paths.cni.binDir], tracer: new Tracer(), clock });
    failures.push(...report.failures);
  }
  // Named, though the steps after this one take most of it away all the same.
  if (failures.length > 0) throw new Error(failures.map(errorMessage).join('; '));
}

/** Where containerd's CNI library caches results, of every containerd on the machine. */
const RESULTS_DIR = '/var/lib/cni/results';

/** A containerd that was killed leaves its results: they are known by their network namespaces' paths. */
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

/** Removes the lab's bridge and its ports. The kernel removes a veth with its namespace, but too late for the comparison. */
async function removeLinks(bridge: string): Promise<void> {
  const shown = await exec('ip', ['-json', 'link', 'show', 'master', bridge]);
  // ip prints nothing for a bridge without ports, and fails for one that does not exist.
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
