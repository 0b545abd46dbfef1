// The agent's own half of cgroups, without a runtime: what the kernel's files and systemd's units say of kubepods, its
// classes and three pods, while they are there and afterwards.

import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CgroupDriver, cgroupParent, cgroupPath, qosName } from '../../../agent/model/cgroup-names.ts';
import { createNodeCgroups } from '../../../agent/node/cgroups.ts';
import { createSystemdSlices } from '../../../agent/node/systemd-slices.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { execOk } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import {
  cgroupDirectory,
  cgroupExists,
  cgroupFiles,
  eventually,
  kubepodsUnits,
  unitProperties,
} from './machine-state.ts';
import { check, compare, note } from './report.ts';

function pod(name: string, resources: Container['resources']): Pod {
  return {
    metadata: { name, namespace: 'default', uid: `${name}-1111-2222` },
    spec: { containers: [{ name: 'main', image: 'none', ...(resources === undefined ? {} : { resources }) }] },
  } as Pod;
}

const BURSTABLE = pod('burst', { requests: { cpu: '300m', memory: '32Mi' }, limits: { cpu: '500m', memory: '64Mi' } });
const GUARANTEED = pod('guar', { limits: { cpu: '250m', memory: '48Mi' } });
const BEST_EFFORT = pod('best', undefined);

/** By hand: weight = ⌊1 + (shares − 2) × 9999 / 262142⌋ with shares = milli × 1024 / 1000 (KEP-2254). */
const WANTED_WEIGHT = { kubepods: '59', burstable: '12', besteffort: '1', guaranteedPod: '10' };

export async function checkHierarchy(driver: CgroupDriver): Promise<void> {
  note(`== cgroups as the agent makes them, ${driver} driver`);
  const layout = { root: '/', driver };
  const tracer = new Tracer();
  const cgroups = createNodeCgroups({
    ...{ layout, tracer, clock: systemClock },
    allocatable: { cpuMilli: 1500, memoryBytes: 2 ** 30 },
    ...{ cpuCFSQuota: true, cpuCFSQuotaPeriodUs: 100_000, podPidsLimit: 64 },
    ...(driver === 'systemd' ? { slices: createSystemdSlices({ tracer }) } : {}),
  });
  const at = (one: Pod): string => cgroupParent(layout, one);
  const kubepods = cgroupPath(layout, qosName(layout, 'Guaranteed'));
  const burstable = cgroupPath(layout, qosName(layout, 'Burstable'));
  const bestEffort = cgroupPath(layout, qosName(layout, 'BestEffort'));
  try {
    await check(`${driver}: the hierarchy is version 2, and this is its root`, () => ({
      held: cgroups.version === 2,
      saw: `version ${cgroups.version}; ${JSON.stringify(cgroupFiles('', 'cgroup.controllers', 'cgroup.subtree_control'))}`,
    }));
    await cgroups.ensureNode();
    for (const one of [BURSTABLE, GUARANTEED, BEST_EFFORT]) await cgroups.ensurePod(one);
    const files = (): ReturnType<typeof compare> =>
      compare(
        {
          ...cgroupFiles(kubepods, 'cpu.weight', 'memory.max'),
          ...cgroupFiles(burstable, 'cpu.weight'),
          ...cgroupFiles(bestEffort, 'cpu.weight'),
          ...cgroupFiles(at(BURSTABLE), 'cpu.weight', 'cpu.max', 'memory.max', 'pids.max'),
          ...cgroupFiles(at(GUARANTEED), 'cpu.weight', 'cpu.max', 'memory.max', 'pids.max'),
          ...cgroupFiles(at(BEST_EFFORT), 'cpu.weight', 'cpu.max', 'memory.max', 'pids.max'),
        },
        {
          [`${cgroupDirectory(kubepods)}/cpu.weight`]: WANTED_WEIGHT.kubepods,
          [`${cgroupDirectory(kubepods)}/memory.max`]: '1073741824',
          [`${cgroupDirectory(burstable)}/cpu.weight`]: WANTED_WEIGHT.burstable,
          [`${cgroupDirectory(bestEffort)}/cpu.weight`]: WANTED_WEIGHT.besteffort,
          [`${cgroupDirectory(at(BURSTABLE))}/cpu.weight`]: WANTED_WEIGHT.burstable,
          [`${cgroupDirectory(at(BURSTABLE))}/cpu.max`]: '50000 100000',
          [`${cgroupDirectory(at(BURSTABLE))}/memory.max`]: '67108864',
          [`${cgroupDirectory(at(BURSTABLE))}/pids.max`]: '64',
          [`${cgroupDirectory(at(GUARANTEED))}/cpu.weight`]: WANTED_WEIGHT.guaranteedPod,
          [`${cgroupDirectory(at(GUARANTEED))}/cpu.max`]: '25000 100000',
          [`${cgroupDirectory(at(GUARANTEED))}/memory.max`]: '50331648',
          [`${cgroupDirectory(at(GUARANTEED))}/pids.max`]: '64',
          [`${cgroupDirectory(at(BEST_EFFORT))}/cpu.weight`]: WANTED_WEIGHT.besteffort,
          [`${cgroupDirectory(at(BEST_EFFORT))}/cpu.max`]: 'max 100000',
          [`${cgroupDirectory(at(BEST_EFFORT))}/memory.max`]: 'max',
          [`${cgroupDirectory(at(BEST_EFFORT))}/pids.max`]: '64',
        },
      );
    await check(`${driver}: kubepods, its classes and pods have the limits that the kubelet writes`, files);
    if (driver === 'systemd') {
      const unit = at(BURSTABLE).replace(/^.*\//, '');
      const properties = ['ActiveState', 'CPUWeight', 'CPUQuotaPerSecUSec', 'MemoryMax', 'TasksMax', 'Transient'];
      await check('systemd: the pod’s slice is a unit that systemd has with the same limits', async () =>
        compare(await unitProperties(unit, ...properties), {
          [`${unit}/ActiveState`]: 'active',
          [`${unit}/CPUWeight`]: '12',
          [`${unit}/CPUQuotaPerSecUSec`]: '500ms',
          [`${unit}/MemoryMax`]: '67108864',
          [`${unit}/TasksMax`]: '64',
          [`${unit}/Transient`]: 'yes',
        }),
      );
      await execOk('systemctl', ['daemon-reload']);
      await check('systemd: after a daemon-reload every limit is still there', files);
    }
    await checkPodsEnd(driver, at(BURSTABLE), cgroups.removePod);
    await check(`${driver}: pods are found again by their cgroups`, async () => {
      const uids = (await cgroups.listPods()).toSorted().join(' ');
      return { held: uids === 'best-1111-2222 guar-1111-2222', saw: uids };
    });
  } finally {
    await cgroups.removeNode();
  }
  await check(`${driver}: nothing of kubepods is left`, async () => {
    const left = await eventually('units to go', async () => {
      const units = await kubepodsUnits();
      return units.length === 0 ? [] : undefined;
    });
    return { held: !cgroupExists(kubepods), saw: `${kubepods} exists: ${cgroupExists(kubepods)}; units: [${left}]` };
  });
}

async function checkPodsEnd(
  driver: CgroupDriver,
  path: string,
  removePod: (uid: PodUID) => Promise<void>,
): Promise<void> {
  await check(`${driver}: removing a pod kills what is left in it, and cgroup and unit go`, async () => {
    const container = join(cgroupDirectory(path), 'container-1');
    mkdirSync(container);
    const child = spawn('sh', ['-c', "trap '' TERM; while :; do sleep 1000; done"], { stdio: 'ignore' });
    const exited = new Promise<string | null>((resolve) => child.on('exit', (_code, signal) => resolve(signal)));
    writeFileSync(join(container, 'cgroup.procs'), String(child.pid));
    await removePod(BURSTABLE.metadata.uid as PodUID);
    const signal = await exited;
    const unit = path.replace(/^.*\//, '');
    const units = await eventually('the unit to go', async () => {
      const loaded = await kubepodsUnits();
      return loaded.includes(unit) ? undefined : loaded;
    });
    return {
      held: signal === 'SIGKILL' && !cgroupExists(path),
      saw: `the process ended by ${signal}; ${path} exists: ${cgroupExists(path)}; units left: ${units.join(' ')}`,
    };
  });
}
