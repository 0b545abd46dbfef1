// A running pod is resized in place: on cgroup v2 the kernel's figures of pod and container change under a process that
// goes on, and with the systemd driver systemd knows of them, too, and does not take them back.

import type { Pod } from '../../../client/types.ts';
import { execOk } from '../../../lib/exec.ts';
import { type Cluster, FOREVER } from './cluster.ts';
import { cgroupDirectory, cgroupFiles, unitProperties } from './machine-state.ts';
import { check, compare } from './report.ts';

const MiB = 2 ** 20;

async function resize(cluster: Cluster, resources: object): Promise<Pod> {
  const patch = { spec: { containers: [{ name: 'main', resources }] } };
  return await cluster.lab.client.patch<Pod>(`${cluster.path('resized')}/resize`, patch, 'strategic');
}

export async function checkResize(cluster: Cluster): Promise<void> {
  const { driver, label } = cluster;
  const first = { requests: { cpu: '100m', memory: '16Mi' }, limits: { cpu: '300m', memory: '40Mi' } };
  await cluster.create('resized', FOREVER, first);
  const before = await cluster.running('resized');
  const { pod, container } = cluster.cgroups(before);
  const files = (): Record<string, string> => ({
    ...cgroupFiles(pod, 'cpu.weight', 'cpu.max', 'memory.max'),
    ...cgroupFiles(container, 'cpu.weight', 'cpu.max', 'memory.max'),
  });
  const figures = (weight: string, cpu: string, memory: number): Record<string, string> =>
    Object.fromEntries(
      [pod, container].flatMap((path) => [
        [`${cgroupDirectory(path)}/cpu.weight`, weight],
        [`${cgroupDirectory(path)}/cpu.max`, cpu],
        [`${cgroupDirectory(path)}/memory.max`, String(memory)],
      ]),
    );
  const done = (memory: string, cpu: string): Promise<Pod> =>
    cluster.when(
      'resized',
      `resized to ${memory} and ${cpu}`,
      ({ resources }, { status }) =>
        resources?.limits?.['memory'] === memory &&
        resources.limits['cpu'] === cpu &&
        !(status?.conditions ?? []).some(({ type }) => type === 'PodResizeInProgress'),
    );

  await check(`${label}: a pod is given more while it runs, and the kernel has the new figures`, async () => {
    await resize(cluster, { requests: { cpu: '500m', memory: '32Mi' }, limits: { cpu: '600m', memory: '80Mi' } });
    const status = (await done('80Mi', '600m')).status?.containerStatuses?.[0];
    const seen = { ...files(), restartCount: String(status?.restartCount), containerID: String(status?.containerID) };
    return compare(seen, {
      ...figures('20', '60000 100000', 80 * MiB),
      restartCount: '0',
      containerID: String(before.status?.containerStatuses?.[0]?.containerID),
    });
  });
  await check(`${label}: a pod is given less cpu while it runs`, async () => {
    await resize(cluster, { requests: { cpu: '100m' }, limits: { cpu: '200m' } });
    await done('80Mi', '200m');
    return compare(files(), figures('4', '20000 100000', 80 * MiB));
  });
  if (driver === 'systemd') {
    await check(`${label}: a reload of systemd takes nothing of a resize back`, async () => {
      await execOk('systemctl', ['daemon-reload']);
      const [slice = '', scope = ''] = [pod, container].map((path) => path.replace(/^.*\//, ''));
      return compare(
        {
          ...files(),
          ...(await unitProperties(slice, 'CPUQuotaPerSecUSec', 'MemoryMax')),
          ...(await unitProperties(scope, 'CPUQuotaPerSecUSec', 'MemoryMax')),
        },
        {
          ...figures('4', '20000 100000', 80 * MiB),
          [`${slice}/CPUQuotaPerSecUSec`]: '200ms',
          [`${slice}/MemoryMax`]: String(80 * MiB),
          [`${scope}/CPUQuotaPerSecUSec`]: '200ms',
          [`${scope}/MemoryMax`]: String(80 * MiB),
        },
      );
    });
  }
  await cluster.delete('resized');
}
