// The demo with everything real: this machine, a lab started as `nodelet up` starts it, lines on stdout.

import { elapsedMs, systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { compareWithMachine, snapshotMachine } from '../../lib/machine.ts';
import type { Ending } from '../commands/ending.ts';
import { clearEarlierDemo } from '../lab/earlier.ts';
import { startLab } from '../lab/lab.ts';
import { labAt } from '../lab/take-root.ts';
import { type DemoPart, runDemo } from './run.ts';
import { showCluster } from './show-cluster.ts';
import { showPod } from './show-pod.ts';

/** A lost node is noticed after 10 seconds, not 40: its lease is renewed every 2.5, and not every 10. Busy machines renew late. */
const CLUSTER = {
  nodes: { count: 2 },
  proxy: 'iptables',
  dns: true,
  kubeletConfiguration: { nodeLeaseDurationSeconds: 10 },
  controlplaneFlags: ['--node-monitor-grace-period', '10s'],
} as const;

export interface DemoFlags {
  readonly root: string;
  /** `machine` compares everything; `lab` only what has this lab's names, for a machine that other programs use. */
  readonly compare: 'machine' | 'lab';
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  readonly runtime?: 'containerd' | 'docker';
  /** The pod alone, without the cluster. */
  readonly pod?: boolean;
}

/** Resolves with the exit code. Rejects with UserError when it is not root or the lab cannot start. */
export async function demoOnThisMachine(flags: DemoFlags, ending: Pick<Ending, 'say' | 'signal'>): Promise<number> {
  if (process.getuid?.() !== 0) throw new UserError('must be root: the demo runs a real pod on this machine');
  const started = systemClock.monotonic();
  const say = (line: string): void => {
    const seconds = (elapsedMs(started, systemClock.monotonic()) / 1000).toFixed(2);
    ending.say(`${seconds.padStart(6)} s  ${line}`);
  };
  const { signal } = ending;
  const paths = await labAt(flags.root);
  // Before the first snapshot: leftovers of a killed demo are not part of the machine's state.
  await clearEarlierDemo(paths, say, 'demo');
  signal.throwIfAborted();
  const own = [paths.root, paths.hash, paths.bridge, paths.networkName];
  const directories = [paths.root];
  const before = await snapshotMachine({ directories });
  const { cgroupDriver = 'cgroupfs', runtime = 'containerd', root } = flags;
  const common = { root, purpose: 'demo', say: (line: string) => say(`  ${line}`), signal } as const;
  const pod: DemoPart = {
    title: 'containerd, API server, control plane, agent',
    startLab: () => startLab({ ...common, cgroupDriver, runtime }),
    show: showPod,
  };
  const cluster: DemoPart = {
    title: 'two nodes, each with a network of its own, the proxy for Services, DNS',
    startLab: () => startLab({ ...common, ...CLUSTER }),
    show: showCluster,
  };
  // Several nodes are there with containerd and plain cgroups.
  const podAlone = flags.pod === true || runtime !== 'containerd' || cgroupDriver !== 'cgroupfs';
  return runDemo({
    say,
    parts: podAlone ? [pod] : [pod, cluster],
    leftBehind: () =>
      compareWithMachine(before, { directories, ...(flags.compare === 'lab' ? { mentioning: own } : {}) }),
    signal,
  });
}
