// Pods on Docker, on cgroup v2: limits of pod and container as the kernel has them, changed while they run, figures that agree
// with the kernel's, a container out of memory, and nothing left of dockerd. The machine has AppArmor in its kernel and no
// apparmor_parser, so that Docker's own profile cannot be loaded.

import { readdir } from 'node:fs/promises';
import { type CgroupDriver, cgroupPath, kubepodsName } from '../../../agent/model/cgroup-names.ts';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { startLab } from '../../../cli/lab/lab.ts';
import { runtimeSocket } from '../../../cli/lab/state.ts';
import { execInPod } from '../../../client/exec.ts';
import type { Container, Pod } from '../../../client/types.ts';
import { Engine } from '../../../dockershim/engine.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { compareWithMachine, snapshotMachine } from '../../../lib/machine.ts';
import { Tracer } from '../../../lib/trace.ts';
import { Cluster, FOREVER, NAMESPACE } from './cluster.ts';
import { cgroupDirectory, cgroupExists, cgroupFiles, counter, eventually, kubepodsUnits } from './machine-state.ts';
import { checkLimits, checkOom, MEMORY_HOG, PODS_PIDS } from './pods.ts';
import { check, compare, note } from './report.ts';
import { checkResize } from './resize.ts';

const MiB = 2 ** 20;

export async function checkDocker(driver: CgroupDriver): Promise<void> {
  note(`== pods on Docker, ${driver} driver`);
  const before = await snapshotMachine();
  const lab = await startLab({
    runtime: 'docker',
    images: 'build',
    cgroupDriver: driver,
    kubeletConfiguration: { podPidsLimit: PODS_PIDS },
    say: (line) => note(`  ${line}`),
  });
  const label = `docker, ${driver}`;
  const endpoint = `unix://${runtimeSocket(lab.paths, lab.state)}`;
  const cri = createCriClient(endpoint, endpoint, new Tracer());
  const cluster = new Cluster(lab, driver, label);
  const engine = new Engine(lab.paths.docker.socket, new Tracer());
  try {
    await checkFacts(cluster, cri);
    await checkProfile(cluster, engine);
    await checkLimits(cluster);
    await checkFigures(cluster, cri);
    await checkUnified(cluster, cri);
    await cluster.delete('limits');
    await checkResize(cluster);
    await checkOom(cluster);
    await checkOomKept(cluster, cri, engine);
  } finally {
    cri.close();
    const problems = await lab.stop();
    await check(`${label}: the lab is taken down, and the machine is as it was`, async () => {
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

async function checkFacts({ label, driver }: Cluster, cri: CriClient): Promise<void> {
  await check(`${label}: Docker runs on cgroup v2 with the driver of the agent`, async () => {
    const { info } = await cri.call('Status', { verbose: true });
    const text = info['config'] ?? '';
    return { held: text.includes('"cgroupVersion":2') && text.includes(`"cgroupDriver":"${driver}"`), saw: text };
  });
}

/** Why the shim names a profile: without one Docker takes its own, and cannot load it here. */
async function checkProfile({ label }: Cluster, engine: Engine): Promise<void> {
  await check(`${label}: a container that names no AppArmor profile is not started by Docker`, async () => {
    const { id } = await engine.call('ContainerCreate', {}, (docker) =>
      docker.createContainer({ Image: 'busybox:stable', Cmd: ['true'], HostConfig: { NetworkMode: 'none' } }),
    );
    const why = await engine
      .call('ContainerStart', {}, (docker) => docker.getContainer(id).start())
      .then(() => 'it was started', errorMessage);
    await engine.call('ContainerDelete', {}, (docker) => docker.getContainer(id).remove({ force: true }));
    return { held: why.includes('AppArmor'), saw: why };
  });
}

const containerId = (pod: Pod): string =>
  pod.status?.containerStatuses?.[0]?.containerID?.replace(/^docker:\/\//, '') ?? '';

/** What is counted is between the kernel's figures before and after the call. */
async function checkFigures(cluster: Cluster, cri: CriClient): Promise<void> {
  await check(`${cluster.label}: the stats of a container are the kernel’s`, async () => {
    const pod = await cluster.running('limits');
    const { container } = cluster.cgroups(pod);
    const used = (): number => counter(container, 'cpu.stat', 'usage_usec') * 1000;
    const least = used();
    const { stats } = await cri.call('ContainerStats', { container_id: containerId(pod) });
    const most = used();
    const cpu = Number(stats?.cpu?.usage_core_nano_seconds?.value);
    const [workingSet, available] = [stats?.memory?.working_set_bytes, stats?.memory?.available_bytes].map((figure) =>
      Number(figure?.value),
    );
    const limit = (workingSet ?? 0) + (available ?? 0);
    const sandbox = await cri.call('ListPodSandbox', {
      filter: { label_selector: { 'io.kubernetes.pod.name': 'limits' } },
    });
    const podStats = await cri.call('PodSandboxStats', { pod_sandbox_id: sandbox.items[0]?.id ?? '' });
    const processes = Number(podStats.stats?.linux?.process?.process_count?.value);
    return {
      // The shell, its sleep, and the pause process.
      held: cpu > 0 && cpu >= least && cpu <= most && limit === 40 * MiB && processes === 3,
      saw: `cpu ${least} ≤ ${cpu} ≤ ${most} ns; working set ${workingSet} of ${limit} bytes; ${processes} processes`,
    };
  });
}

/** Files of cgroup v2 by their names: those that Docker has an option for, and others. */
async function checkUnified(cluster: Cluster, cri: CriClient): Promise<void> {
  await check(`${cluster.label}: files of cgroup v2 are changed by their names`, async () => {
    const pod = await cluster.running('limits');
    const { container } = cluster.cgroups(pod);
    const unified = { 'memory.high': String(20 * MiB), 'pids.max': '17', 'cpu.max.burst': '10000' };
    await cri.call('UpdateContainerResources', { container_id: containerId(pod), linux: { unified } });
    return compare(cgroupFiles(container, ...Object.keys(unified), 'memory.max'), {
      ...Object.fromEntries(
        Object.entries(unified).map(([file, text]) => [`${cgroupDirectory(container)}/${file}`, text]),
      ),
      // What the request does not name stays as it is.
      [`${cgroupDirectory(container)}/memory.max`]: String(40 * MiB),
    });
  });
}

/** How each container of the pod ended: "name: reason, exit code", of those that have ended. */
const ends = (pod: Pod): readonly string[] =>
  (pod.status?.containerStatuses ?? []).flatMap(({ name, state }) =>
    state?.terminated === undefined ? [] : [`${name}: ${state.terminated.reason}, ${state.terminated.exitCode}`],
  );

const runs = (pod: Pod, container: string): boolean =>
  pod.status?.containerStatuses?.some(({ name, state }) => name === container && state?.running !== undefined) === true;

/**
 * Docker need not notice the end (with the systemd driver): the shim knows it all the same, of the right container, and after it
 * was killed itself.
 */
async function checkOomKept(cluster: Cluster, cri: CriClient, engine: Engine): Promise<void> {
  const { label, lab } = cluster;
  await check(
    `${label}: of three containers the one that outgrew its memory is OOMKilled, after kill -9 of the shim too`,
    async () => {
      const container = (name: string, script: string, limits: Record<string, string> = {}): Container => ({
        ...{ name, image: 'busybox:stable', command: ['sh', '-c', script] },
        resources: { limits },
      });
      await cluster.create('three', '', undefined, {
        restartPolicy: 'Never',
        containers: [
          container('plain', 'exit 137'),
          container('hog', `until test -e /go; do sleep 1; done; ${MEMORY_HOG}`, { memory: '24Mi', cpu: '1' }),
          container('beside', FOREVER),
        ],
      });
      // One after the other: where two end at the same time, both are taken for the one that was killed.
      await cluster.whenPod('three', 'one container less', (each) => ends(each).length === 1);
      await cluster.whenPod('three', 'growing', (each) => runs(each, 'hog'));
      const { access } = lab.client;
      await execInPod(access, { namespace: NAMESPACE, pod: 'three', container: 'hog', command: ['touch', '/go'] });
      const pod = await cluster.whenPod('three', 'two containers less', (each) => ends(each).length === 2);
      const id =
        pod.status?.containerStatuses?.find(({ name }) => name === 'hog')?.containerID?.replace(/^.*:\/\//, '') ?? '';
      const { State: state } = await engine.inspect(id);
      const first = lab.pid('dockershim');
      if (first === undefined) throw new Error('no dockershim runs');
      process.kill(first, 'SIGKILL');
      const status = await eventually('another dockershim', async () => {
        const pid = lab.pid('dockershim');
        return pid === undefined || pid === first ? undefined : cri.call('ContainerStatus', { container_id: id });
      });
      await cluster.delete('three');
      // A new shim has logs to go on with: none comes back.
      await eventually('its logs to be gone', async () => {
        const names = await readdir(lab.paths.podLogsDir);
        return names.some((name) => name.includes('_three_')) ? undefined : true;
      });
      const seen = ends(pod).toSorted().join('; ');
      return {
        held: seen === 'hog: OOMKilled, 137; plain: Error, 137' && status.status?.reason === 'OOMKilled',
        saw: `${seen}; OOMKilled for Docker: ${state.OOMKilled}; from another shim: ${status.status?.reason}`,
      };
    },
  );
}
