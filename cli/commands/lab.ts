// `nodelet up` and `nodelet down`: the lab in the foreground, and its end from any state.

import { Command, InvalidArgumentError, Option } from 'commander';
import { UserError } from '../../lib/errors.ts';
import { MAX_NODES } from '../lab/node/plan.ts';
import { DEFAULT_ROOT, LAB_PARTS, type LabPart } from '../lab/paths.ts';
import { parsePort } from './apiserver.ts';
import { durationFlag } from './duration-flag.ts';
import { commandEnding } from './ending.ts';
import { bytes, checked, pullLimit } from './registry-flags.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface UpFlags {
  readonly root: string;
  readonly nodeName?: string;
  readonly apiserverPort?: number;
  readonly kubeletPort?: number;
  readonly bindAddress?: string;
  readonly network: 'agent' | 'runtime';
  readonly runtime: 'containerd' | 'docker';
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly images: 'auto' | 'build' | 'none';
  readonly registryMirror?: string;
  readonly registrySlowRate?: string;
  readonly registryPullLimit?: string;
  readonly proxyMode: 'iptables' | 'nftables' | 'none';
  readonly without: readonly LabPart[];
  readonly nodes?: number;
  readonly zone: readonly string[];
  readonly nodeMonitorGracePeriod?: string;
  readonly csi?: boolean;
  readonly keep?: boolean;
  readonly restore?: string;
}

/** Parts of the lab that may be left out, comma-separated. */
export function parts(text: string): readonly LabPart[] {
  return text.split(',').map((part) => {
    const known = LAB_PARTS.find((each) => each === part);
    if (known !== undefined) return known;
    throw new InvalidArgumentError(`"${part}" cannot be left out: only ${LAB_PARTS.join(', ')} can.`);
  });
}

function nodeCount(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > MAX_NODES) {
    throw new InvalidArgumentError(`it is no number of nodes: 1 to ${MAX_NODES}.`);
  }
  return Number(text);
}

/** Values of the label topology.kubernetes.io/zone. */
function zones(text: string): readonly string[] {
  const all = text.split(',');
  const wrong = all.find((zone) => !/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(zone));
  if (wrong !== undefined) throw new InvalidArgumentError(`"${wrong}" is no name of a zone.`);
  return all;
}

/** What of the flags `runUp` calls otherwise. Throws UserError for flags that do not go together. Pure. */
export function labOptions(flags: UpFlags) {
  const { proxyMode, without, nodes, zone, nodeMonitorGracePeriod, bindAddress, ...others } = flags;
  const { registrySlowRate: slowRate, registryPullLimit: limit, ...rest } = others;
  if (nodes === undefined && zone.length > 0) throw new UserError('--zone is for the nodes of --nodes');
  return {
    ...rest,
    without,
    ...(bindAddress === undefined ? {} : { bindAddress }),
    dns: !without.includes('dns'),
    netpol: !without.includes('netpol'),
    registry: !without.includes('registry') && rest.registryMirror === undefined,
    registryFlags: [
      ...(slowRate === undefined ? [] : ['--slow-rate', slowRate]),
      ...(limit === undefined ? [] : ['--pull-limit', limit]),
    ],
    ...(proxyMode === 'none' || without.includes('proxy') ? {} : { proxy: proxyMode }),
    ...(nodes === undefined ? {} : { nodes: { count: nodes, zones: zone } }),
    ...(nodeMonitorGracePeriod === undefined
      ? {}
      : {
          controlplaneFlags: ['--node-monitor-grace-period', nodeMonitorGracePeriod],
          kubeletConfiguration: leaseWithin(durationFlag('--node-monitor-grace-period')(nodeMonitorGracePeriod)),
        }),
  };
}

/** Seconds; the kubelet's default. A lease is renewed each quarter of it. */
const LEASE_SECONDS = 40;

/** What has agents renew their leases four times in the grace period (ms): with the default a shorter one would find healthy nodes silent. */
function leaseWithin(graceMs: number): { readonly nodeLeaseDurationSeconds?: number } {
  const seconds = Math.max(1, Math.floor(graceMs / 1000));
  return seconds < LEASE_SECONDS ? { nodeLeaseDurationSeconds: seconds } : {};
}

export function upCommand(): Command {
  return new Command('up')
    .description('start a lab in the foreground: containerd, API server, control plane and agent, until Ctrl-C')
    .option('--root <dir>', 'the lab’s directory; several labs run side by side under different ones', DEFAULT_ROOT)
    .option('--node-name <name>', 'name of the node (default: the host name)')
    .option('--apiserver-port <port>', 'port of the API server (default: 6443, or a free one)', parsePort)
    .option('--kubelet-port <port>', 'port of the kubelet API (default: 10250, or a free one)', parsePort)
    .option(
      '--bind-address <ip>',
      'address the API server listens on (default: 127.0.0.1; with --nodes the machine’s on the nodes’ bridge)',
    )
    .option('--nodes <number>', 'several nodes, each with its own network namespace and containerd', nodeCount)
    .addOption(
      new Option('--zone <names>', 'comma-separated zones, given to the nodes in turn')
        .argParser(zones)
        .default([], 'none'),
    )
    .option(
      '--node-monitor-grace-period <duration>',
      'how long a running node may be unresponsive before it is marked unhealthy (default: 50s)',
      (text) => {
        durationFlag('--node-monitor-grace-period')(text);
        return text;
      },
    )
    .addOption(
      new Option('--network <who>', 'who runs CNI: the agent, or the runtime by itself')
        .choices(['agent', 'runtime'])
        .default('agent'),
    )
    .addOption(
      new Option(
        '--runtime <name>',
        'container runtime: containerd, or a dockerd of the lab’s own behind nodelet dockershim',
      )
        .choices(['containerd', 'docker'])
        .default('containerd'),
    )
    .addOption(
      new Option('--cgroup-driver <driver>', 'pods’ cgroups as plain directories, or as slices of systemd')
        .choices(['cgroupfs', 'systemd'])
        .default('cgroupfs'),
    )
    .addOption(
      new Option(
        '--images <source>',
        'where the lab’s images come from: a registry if one answers, this machine, nowhere',
      )
        .choices(['auto', 'build', 'none'])
        .default('auto'),
    )
    .option(
      '--registry-mirror <url>',
      'where images of the usual registries are pulled from, in place of the lab’s own registry',
    )
    .option(
      '--registry-slow-rate <bytes>',
      'bytes per second at which the lab’s registry serves images of slow/… (default: 512Ki)',
      checked(bytes),
    )
    .option(
      '--registry-pull-limit <pulls/time>',
      'pulls of limited/… from the lab’s registry without an account (default: 2/1m)',
      checked(pullLimit),
    )
    .addOption(
      new Option('--proxy-mode <mode>', 'how Services are forwarded on this machine')
        .choices(['iptables', 'nftables', 'none'])
        .default('iptables'),
    )
    .addOption(
      new Option(
        '--without <parts>',
        `comma-separated parts to leave out, to run another in their place: ${LAB_PARTS.join(', ')}`,
      )
        .argParser(parts)
        .default([], 'none'),
    )
    .option(
      '--csi',
      'also run a CSI driver with volumes on loop devices, and create the storage classes loop and loop-xfs',
    )
    .option('--keep', 'keep certificates, objects, images and volumes when stopped')
    .option('--restore <file>', 'start from this snapshot of the API server’s store')
    .action(async (flags: UpFlags) => {
      const options = labOptions(flags);
      const { rescueLab, runUp } = await import('../lab/up.ts');
      // A lab continues when its output cannot be written, and writes again when the disk has room.
      const ending = commandEnding({ endWhenFull: false, rescue: () => rescueLab(flags) });
      process.exitCode = ending.exitCode(await runUp({ ...options, say: ending.say, signal: ending.signal }));
    });
}

export function downCommand(): Command {
  return new Command('down')
    .description('take a lab off this machine, from any state; harmless when there is none')
    .option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT)
    .option('--keep', 'keep certificates, objects, images and volumes for the next "nodelet up"')
    .action(async (flags: { root: string; keep?: boolean }) => {
      const { runDown } = await import('../lab/down.ts');
      process.exitCode = await runDown({ ...flags, say });
    });
}
