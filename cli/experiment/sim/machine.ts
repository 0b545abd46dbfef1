// The machine and the cluster of a simulated experiment: the parts of labs/sim put together without chance. Whatever differs
// from call to call (how long it takes) comes from the seed.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeletConfiguration } from '../../../agent/config/kubelet-fields.ts';
import type { SimMachine } from '../../../labs/sim/agent.ts';
import { SimApiServer } from '../../../labs/sim/api-server.ts';
import { SimCheckpoints } from '../../../labs/sim/checkpoints.ts';
import type { VirtualClock } from '../../../labs/sim/clock.ts';
import { type Change, SimCluster, type UserObject } from '../../../labs/sim/cluster.ts';
import { type RuntimeKind, runtimeKindNamed } from '../../../labs/sim/cri/kinds.ts';
import { SimCri } from '../../../labs/sim/cri/runtime.ts';
import type { Instance } from '../../../labs/sim/cri/state.ts';
import { csiLineError, SimCsi } from '../../../labs/sim/csi-driver.ts';
import { Dice } from '../../../labs/sim/dice.ts';
import { SimDiskSpace } from '../../../labs/sim/disk-space.ts';
import { type DnsQuery, NODE_RESOLV_CONF, SimDns } from '../../../labs/sim/dns.ts';
import type { Faults } from '../../../labs/sim/faults.ts';
import { SimDisk } from '../../../labs/sim/files.ts';
import { SimImages } from '../../../labs/sim/images.ts';
import { PassedJournal } from '../../../labs/sim/journal.ts';
import { SimKernel } from '../../../labs/sim/kernel.ts';
import { Line } from '../../../labs/sim/line.ts';
import { SimLogind } from '../../../labs/sim/logind.ts';
import { SimManifests } from '../../../labs/sim/manifests.ts';
import { MeantContainers } from '../../../labs/sim/meant.ts';
import { SimMemory } from '../../../labs/sim/memory.ts';
import { SimNetwork } from '../../../labs/sim/network.ts';
import { FACTS, NODE_NAME } from '../../../labs/sim/node-facts.ts';
import { SimCgroups } from '../../../labs/sim/node-parts.ts';
import { ScriptedProcesses } from '../../../labs/sim/shell/processes.ts';
import { SimShim } from '../../../labs/sim/shim.ts';
import { SimStorage } from '../../../labs/sim/storage-objects.ts';
import { SimVolumes } from '../../../labs/sim/volumes.ts';
import { Weather } from '../../../labs/sim/weather.ts';
import type { ContainerWitness, RuntimeRules } from '../../../labs/sim/witness.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import { durationMs } from '../duration.ts';
import type { WorldSpec } from '../model.ts';

/** What a world of experiments wants to know. */
export interface MachineWitness {
  readonly container: ContainerWitness;
  readonly object: (change: Change, object: UserObject) => void;
  readonly memory: (instance: Instance, bytes: number) => void;
  readonly journal: (line: string) => void;
  readonly query: (query: DnsQuery) => void;
  /** The delay of a shutdown is over. */
  readonly machineOff: () => void;
}

export interface ExperimentMachine extends SimMachine {
  readonly clock: VirtualClock;
  readonly server: SimApiServer;
  readonly cluster: SimCluster;
  readonly api: SimCluster;
  readonly processes: ScriptedProcesses;
  readonly space: SimDiskSpace;
  readonly dns: SimDns;
  readonly logind: SimLogind;
  /** The node's resolv.conf, on its disk. */
  readonly resolvConf: string;
}

const NO_FAULTS: Faults = new Set();

/** Nothing is checked while it runs: an experiment has expectations for that. */
const NO_RULES: RuntimeRules = {
  break: () => undefined,
  mayRunAgain: () => undefined,
  containerCreated: () => undefined,
  containerStarts: () => undefined,
};

/** A pull of an image that is not there: "sim/pull-30s:1" takes 30 s. */
const PULLED = /^sim\/pull-([\w.]+?)(?::|$|-)/;
const USUAL_PULL_MS = 2_000;
/** A pull of what is there already. */
const CHECK_MS = 200;
/** An image that is not there, and its size: "sim/size-2g:1". */
const SIZED = /^sim\/size-(\d+)([mg])(?::|$|-)/;
const USUAL_BYTES = 4 * 1024 ** 2;
const IN_REGISTRY = /^(busybox|nginx)(:|$)/;

class ExperimentImages extends SimImages {
  constructor() {
    const pullMs = (name: string): number => {
      const [, duration] = PULLED.exec(name) ?? [];
      if (this.held.has(name)) return CHECK_MS;
      return (duration === undefined ? undefined : durationMs(duration)) ?? USUAL_PULL_MS;
    };
    super([], [], pullMs, (name) => {
      const [, digits, unit = ''] = SIZED.exec(name) ?? [];
      return digits === undefined ? USUAL_BYTES : quantityValue(`${digits}${unit.toUpperCase()}i`);
    });
    for (const name of ['busybox', 'nginx']) for (const tag of ['latest', 'stable']) this.add(`${name}:${tag}`);
    for (const name of ['busybox', 'nginx']) this.add(name);
  }

  override pull(name: string): ReturnType<SimImages['pull']> {
    const isThere = [PULLED, SIZED, IN_REGISTRY].some((pattern) => pattern.test(name));
    return isThere && !this.unreachable ? this.add(name) : super.pull(name);
  }
}

const plainError = (call: string, failure: string): Error => new Error(`${call}: ${failure}`);

export function createMachine(
  clock: VirtualClock,
  seed: number,
  spec: WorldSpec,
  config: Pick<KubeletConfiguration, 'clusterDNS' | 'clusterDomain'>,
  witness: MachineWitness,
): ExperimentMachine {
  const dice = new Dice(seed);
  const disk = new SimDisk();
  const journal = new PassedJournal(clock, disk.root, witness.journal);
  const weather = new Weather(clock);
  const rules = NO_RULES;
  const faults = NO_FAULTS;
  const line = (name: string, error = plainError): Line =>
    new Line({ name, clock, dice: dice.fork(), journal, error, weather, usualMs: 5 });
  const memory = new SimMemory(disk.root, faults, clock);
  const network = new SimNetwork({ clock, dice: dice.fork(), journal, rules, faults, weather });
  network.pool = spec.capacity?.addresses ?? Math.max(250, spec.capacity?.pods ?? 0);
  const shim = new SimShim(line('cni'), network);
  const meant = new MeantContainers();
  let runtime: SimCri | undefined;
  let cluster: SimCluster | undefined;
  const images = new ExperimentImages();
  const { imagefs } = spec.capacity ?? {};
  const space = new SimDiskSpace({
    nodeBytes: FACTS.diskBytes,
    imageBytes: imagefs === undefined ? undefined : quantityValue(imagefs),
    imageRoot: join(disk.root, 'images'),
    imagesUse: () => images.bytes,
  });
  const dns = new SimDns({
    clock,
    // Chance of its own: nothing else changes with a lookup.
    dice: new Dice(seed),
    clusterServers: config.clusterDNS,
    clusterDomain: config.clusterDomain,
    serviceAddress: (namespace, name) => cluster?.serviceAddress(namespace, name),
    onQuery: witness.query,
  });
  const logind = new SimLogind({ clock, goesOff: witness.machineOff });
  const resolvConf = join(disk.root, 'resolv.conf');
  writeFileSync(resolvConf, NODE_RESOLV_CONF);
  mkdirSync(space.imageRoot);
  const processes = new ScriptedProcesses({
    clock,
    space,
    dns,
    takeMemory: (process, bytes) => {
      const instance = [...(runtime?.state.instances() ?? [])].find((each) => each.process === process);
      if (instance !== undefined && runtime !== undefined) takeMemory(runtime, memory, witness, instance, bytes);
    },
  });
  const cgroups = new SimCgroups(line('cgroups'), faults, () => undefined);
  const kernel = new SimKernel(line('mounts'), rules, () => undefined);
  const csi = new SimCsi({
    line: line('csi', csiLineError),
    dice: dice.fork(),
    rules,
    kernel,
    faults,
    dies: () => undefined,
  });
  const volumes = new SimVolumes(disk.root, kernel, csi);
  runtime = new SimCri({
    kind: kindOf(spec),
    clock,
    dice: dice.fork(),
    journal,
    rules,
    network: shim,
    processes,
    prerequisites: { hasVolumes: () => true, hasCgroup: () => true },
    meant,
    timing: witness.container,
    nodeRules: { runtimeGoes: () => undefined, runtimeIsBack: () => undefined },
    weather,
    memory,
    faults,
    lastWords: false,
    images,
    space,
  });
  const server = new SimApiServer({
    clock,
    dice: dice.fork(),
    journal,
    witness: { statusWritten: () => undefined, deleted: () => undefined, finalized: () => undefined },
    nodeWitness: { nodeWritten: () => undefined, leaseWritten: () => undefined },
    faults,
    weather,
    onChange: (change, kind, object) => witness.object(change, { ...(object as UserObject), kind }),
  });
  cluster = new SimCluster({ server, clock, dice: dice.fork(), weather, onChange: witness.object });
  disk.begin(
    (path) => kernel.deviceOf(path),
    (path) => kernel.isMountPoint(path),
    (path) => network.isNamespace(path),
    memory,
    space,
  );
  return {
    clock,
    dice,
    network,
    shim,
    runtime,
    meant,
    server,
    cluster,
    api: cluster,
    processes,
    manifests: new SimManifests(disk, dice.fork()),
    cgroups,
    disk,
    checkpoints: new SimCheckpoints(dice.fork(), journal),
    kernel,
    csi,
    storage: new SimStorage(clock, dice.fork(), line('objects'), NODE_NAME),
    volumes,
    memory,
    space,
    dns,
    logind,
    resolvConf,
  };
}

/** A process takes more memory; past its container's limit the kernel kills it. */
function takeMemory(
  runtime: SimCri,
  memory: SimMemory,
  witness: MachineWitness,
  instance: Instance,
  bytes: number,
): void {
  memory.grows(instance, bytes);
  const used = memory.bytesOf(instance);
  witness.memory(instance, used);
  const limit = Number(instance.resources?.memory_limit_in_bytes ?? 0);
  if (limit > 0 && used > limit) runtime.end(instance, 137, 'OOMKilled');
}

/** As containerd of that version, with the times of a machine that is not busy. */
function kindOf({ runtime = 'containerd-2' }: WorldSpec): RuntimeKind {
  return { ...runtimeKindNamed(runtime.replace('-', ' ')), startMs: [20, 40], teardownMs: [20, 50] };
}
