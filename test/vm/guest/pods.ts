// Real pods in a lab of the machine's own, on cgroup v2: where their containers are, what limits them, what happens when
// they reach a limit, and that nothing is left. And the demo, which compares the whole machine.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type CgroupDriver, cgroupPath, kubepodsName } from '../../../agent/model/cgroup-names.ts';
import { startLab } from '../../../cli/lab/lab.ts';
import { execInPod } from '../../../client/exec.ts';
import { exec } from '../../../lib/exec.ts';
import { compareWithMachine, snapshotMachine } from '../../../lib/machine.ts';
import { Cluster, FOREVER, NAMESPACE } from './cluster.ts';
import {
  cgroupDirectory,
  cgroupExists,
  cgroupFiles,
  counter,
  eventually,
  kubepodsUnits,
  unitProperties,
} from './machine-state.ts';
import { check, compare, type Finding, note } from './report.ts';
import { checkResize } from './resize.ts';
import { checkShutdown, SHUTDOWN_PERIODS, startLogind, stopLogind } from './shutdown.ts';

export const MEMORY_HOG = 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done';
const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const CPU_HOG = 'trap "exit 0" TERM; while :; do :; done';
export const PODS_PIDS = 48;

export async function checkPods(driver: CgroupDriver): Promise<void> {
  note(`== pods, ${driver} driver`);
  const before = await snapshotMachine();
  // Only one driver's lab waits for shutdowns: it makes no difference to them.
  const shutsDown = driver === 'systemd';
  if (shutsDown) await startLogind();
  const lab = await startLab({
    images: 'build',
    cgroupDriver: driver,
    kubeletConfiguration: { podPidsLimit: PODS_PIDS, ...(shutsDown ? SHUTDOWN_PERIODS : {}) },
    say: (line) => note(`  ${line}`),
  });
  const cluster = new Cluster(lab, driver);
  try {
    const checks = [checkLimits, checkThrottling, checkPids, checkOom, checkResize, checkAppArmor, checkAgentRestart];
    for (const one of shutsDown ? [...checks, checkShutdown] : checks) await one(cluster);
  } finally {
    const problems = await lab.stop();
    if (shutsDown) await stopLogind();
    await check(`${driver}: the lab is taken down, and the machine is as it was`, async () => {
      const differences = [...problems, ...(await compareWithMachine(before))];
      const units = await kubepodsUnits();
      const kubepods = cgroupPath(cluster.layout, kubepodsName(cluster.layout));
      return {
        held: differences.length === 0 && units.length === 0 && !cgroupExists(kubepods),
        saw: [`units: [${units.join(' ')}]; ${kubepods} exists: ${cgroupExists(kubepods)}`, ...differences].join('\n'),
      };
    });
  }
}

export async function checkLimits(cluster: Cluster): Promise<void> {
  const { driver, label } = cluster;
  const resources = { requests: { cpu: '100m', memory: '16Mi' }, limits: { cpu: '300m', memory: '40Mi' } };
  await check(`${label}: a burstable pod and its container have the limits of the manifest`, async () => {
    await cluster.create('limits', FOREVER, resources);
    const { pod, container } = cluster.cgroups(await cluster.running('limits'));
    return compare(
      {
        ...cgroupFiles(pod, 'cpu.weight', 'cpu.max', 'memory.max', 'pids.max'),
        ...cgroupFiles(container, 'cpu.weight', 'cpu.max', 'memory.max', 'memory.oom.group', 'memory.swap.max'),
      },
      {
        [`${cgroupDirectory(pod)}/cpu.weight`]: '4',
        [`${cgroupDirectory(pod)}/cpu.max`]: '30000 100000',
        [`${cgroupDirectory(pod)}/memory.max`]: String(40 * 2 ** 20),
        [`${cgroupDirectory(pod)}/pids.max`]: String(PODS_PIDS),
        [`${cgroupDirectory(container)}/cpu.weight`]: '4',
        [`${cgroupDirectory(container)}/cpu.max`]: '30000 100000',
        [`${cgroupDirectory(container)}/memory.max`]: String(40 * 2 ** 20),
        // A container's processes die together, and none is swapped out.
        [`${cgroupDirectory(container)}/memory.oom.group`]: '1',
        [`${cgroupDirectory(container)}/memory.swap.max`]: '0',
      },
    );
  });
  await check(`${label}: what the container itself sees is its own cgroup with those limits`, async () => {
    const access = cluster.lab.client.access;
    const command = ['cat', '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/cpu.max'];
    const { stdout } = await execInPod(access, { namespace: NAMESPACE, pod: 'limits', command });
    return { held: stdout === `${40 * 2 ** 20}\n30000 100000\n`, saw: stdout };
  });
  if (driver !== 'systemd') return;
  await check(`${label}: the pod is a slice, and the container a scope in it`, async () => {
    const { pod, container } = cluster.cgroups(await cluster.running('limits'));
    const [slice, scope] = [pod, container].map((path) => path.replace(/^.*\//, ''));
    return compare(
      {
        ...(await unitProperties(slice ?? '', 'ActiveState', 'CPUQuotaPerSecUSec', 'MemoryMax', 'TasksMax')),
        ...(await unitProperties(scope ?? '', 'ActiveState', 'Slice', 'MemoryMax')),
      },
      {
        [`${slice}/ActiveState`]: 'active',
        [`${slice}/CPUQuotaPerSecUSec`]: '300ms',
        [`${slice}/MemoryMax`]: String(40 * 2 ** 20),
        [`${slice}/TasksMax`]: String(PODS_PIDS),
        [`${scope}/ActiveState`]: 'active',
        [`${scope}/Slice`]: slice ?? '',
        [`${scope}/MemoryMax`]: String(40 * 2 ** 20),
      },
    );
  });
}

async function checkThrottling(cluster: Cluster): Promise<void> {
  await check(`${cluster.driver}: a pod that wants more cpu than its limit is throttled`, async () => {
    await cluster.create('busy', CPU_HOG, { limits: { cpu: '200m', memory: '32Mi' } });
    const { pod } = cluster.cgroups(await cluster.running('busy'));
    const throttled = await eventually('throttling', () => {
      const times = counter(pod, 'cpu.stat', 'nr_throttled');
      return times > 0 ? times : undefined;
    });
    const files = Object.entries(cgroupFiles(pod, 'cpu.max', 'cpu.stat')).map(([name, text]) => `${name}: ${text}`);
    await cluster.delete('busy');
    return {
      held: throttled > 0 && !cgroupExists(pod),
      saw: [...files, `after delete: ${cgroupExists(pod)}`].join('\n'),
    };
  });
}

/** As many processes as it can have, and then none more; execs the last, which needs no fork. */
const FORKS = '(while :; do sleep 1000 & done); exec tail -f /dev/null';

async function checkPids(cluster: Cluster): Promise<void> {
  await check(`${cluster.driver}: a pod that forks without end stops at its pids limit`, async () => {
    await cluster.create('forks', FORKS);
    const { pod, container } = cluster.cgroups(await cluster.running('forks'));
    const refused = await eventually('a fork to be refused', () => {
      // Counted where the fork was tried, whichever limit above stood in its way.
      const times = counter(container, 'pids.events', 'max');
      return times > 0 ? times : undefined;
    });
    const files = cgroupFiles(pod, 'pids.max', 'pids.current');
    const [max, current] = Object.values(files).map(Number);
    await cluster.delete('forks');
    return {
      held:
        max === PODS_PIDS &&
        current !== undefined &&
        current > PODS_PIDS / 2 &&
        current <= PODS_PIDS &&
        !cgroupExists(pod),
      saw: `${JSON.stringify(files)}; refused ${refused} times; after delete: ${cgroupExists(pod)}`,
    };
  });
}

export async function checkOom(cluster: Cluster): Promise<void> {
  await check(`${cluster.label}: a container that outgrows its memory ends OOMKilled with 137`, async () => {
    const resources = { limits: { memory: '24Mi', cpu: '1' } };
    await cluster.create('hog', MEMORY_HOG, resources, { restartPolicy: 'Never' });
    const pod = await cluster.when('hog', 'ended', (status) => status.state?.terminated !== undefined);
    const ended = pod.status?.containerStatuses?.[0]?.state?.terminated;
    await cluster.delete('hog');
    return {
      held: ended?.exitCode === 137 && ended.reason === 'OOMKilled' && pod.status?.phase === 'Failed',
      saw: `phase ${pod.status?.phase}, exit code ${ended?.exitCode}, reason ${ended?.reason}`,
    };
  });
}

/** Debian's kernel has AppArmor, so the agent admits the pod, and the runtime refuses a profile that is not loaded. */
async function checkAppArmor(cluster: Cluster): Promise<void> {
  const { driver, lab } = cluster;
  await check(`${driver}: explain names an AppArmor profile that is not loaded`, async (): Promise<Finding> => {
    const appArmorProfile = { type: 'Localhost', localhostProfile: 'not-loaded' };
    await cluster.create('confined', FOREVER, undefined, { securityContext: { appArmorProfile } });
    const pod = await cluster.when('confined', 'refused', ({ state }) => (state?.waiting?.message ?? '') !== '');
    const { reason, message } = pod.status?.containerStatuses?.[0]?.state?.waiting ?? {};
    const target = ['explain', 'pod', `${NAMESPACE}/confined`, '--root', lab.paths.root, '-o', 'json'];
    const { stdout } = await exec(NODELET, target, { timeoutMs: 120_000 });
    const { rule, verdict }: { rule?: string; verdict?: string } = JSON.parse(stdout);
    await cluster.delete('confined');
    return {
      held: rule === 'container-start' && verdict?.includes('AppArmor profile cannot be used') === true,
      saw: `${reason}: ${message}\n${rule}: ${verdict}`,
    };
  });
}

/** kill -9 of the agent: pods, cgroups and units stay as they are. */
async function checkAgentRestart(cluster: Cluster): Promise<void> {
  const { driver, lab } = cluster;
  await check(
    `${driver}: killing the agent leaves the pod, its cgroup and its limits alone`,
    async (): Promise<Finding> => {
      const before = await cluster.running('limits');
      const id = before.status?.containerStatuses?.[0]?.containerID;
      const { pod } = cluster.cgroups(before);
      const first = lab.pid('agent');
      if (first === undefined) throw new Error('no agent runs');
      process.kill(first, 'SIGKILL');
      const second = await eventually('another agent', () => {
        const pid = lab.pid('agent');
        return pid === undefined || pid === first ? undefined : pid;
      });
      // A pod made now shows that the new agent works on what it found.
      await cluster.create('after', FOREVER);
      await cluster.running('after');
      const now = await cluster.running('limits');
      const status = now.status?.containerStatuses?.[0];
      const files = cgroupFiles(pod, 'cpu.max', 'memory.max');
      await cluster.delete('after');
      await cluster.delete('limits');
      return {
        held:
          status?.containerID === id &&
          status?.restartCount === 0 &&
          Object.values(files).join(' ') === `30000 100000 ${40 * 2 ** 20}` &&
          !cgroupExists(pod),
        saw: `agent ${first} → ${second}; restartCount ${status?.restartCount}; ${JSON.stringify(files)}; after delete: ${cgroupExists(pod)}`,
      };
    },
  );
}

export async function checkDemo(driver: CgroupDriver): Promise<void> {
  note(`== the demo, ${driver} driver`);
  await check(`${driver}: nodelet demo holds, the whole machine compared`, async () => {
    const command = NODELET;
    const child = spawn(command, ['demo', '--cgroup-driver', driver], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      note(`  ${line}`);
    });
    const read = new Promise<void>((resolve) => reader.on('close', resolve));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    await read;
    const memory = /^MemAvailable:.*$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[0] ?? '';
    return { held: code === 0, saw: `exit ${code}: ${lines.at(-1) ?? ''}; ${memory}` };
  });
}
