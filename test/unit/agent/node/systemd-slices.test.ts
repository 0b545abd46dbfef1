import { describe, expect, test } from 'vitest';
import type { CgroupLimits } from '../../../../agent/node/cgroup-limits.ts';
import {
  createSystemdSlices,
  limitProperties,
  managerCall,
  sliceProperties,
  sliceUnit,
} from '../../../../agent/node/systemd-slices.ts';
import type { Exec, ExecResult } from '../../../../lib/exec.ts';
import { Tracer } from '../../../../lib/trace.ts';

const POD = '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice';
const UNIT = 'kubepods-burstable-pod1_2.slice';

describe('a slice’s properties', () => {
  const rows: [string, CgroupLimits, Record<string, string>][] = [
    ['shares become a weight', { cpuShares: 1024 }, { CPUWeight: '39' }],
    ['the fewest shares are the least weight', { cpuShares: 2 }, { CPUWeight: '1' }],
    [
      'a quota is sent as time per second, beside its period',
      { cpuQuotaUs: 50_000, cpuPeriodUs: 100_000 },
      { CPUQuotaPeriodUSec: '100000', CPUQuotaPerSecUSec: '500000' },
    ],
    [
      'a quota between two of systemd’s steps is rounded up',
      { cpuQuotaUs: 1_234, cpuPeriodUs: 100_000 },
      { CPUQuotaPeriodUSec: '100000', CPUQuotaPerSecUSec: '20000' },
    ],
    [
      'no quota is infinity',
      { cpuQuotaUs: -1 },
      { CPUQuotaPeriodUSec: '100000', CPUQuotaPerSecUSec: '18446744073709551615' },
    ],
    ['memory is told in bytes', { memoryBytes: 67_108_864 }, { MemoryMax: '67108864' }],
    ['no memory limit is infinity', { memoryBytes: -1 }, { MemoryMax: '18446744073709551615' }],
    ['a pids limit is TasksMax', { pids: 64 }, { TasksMax: '64' }],
    ['no pids limit is infinity', { pids: -1 }, { TasksMax: '18446744073709551615' }],
    ['what is absent is not told', {}, {}],
  ];
  test.each(rows)('%s', (_sentence, limits, wanted) => {
    const properties = limitProperties(limits);
    expect(Object.fromEntries(properties.map(({ name, value }) => [name, value]))).toEqual(wanted);
    expect(properties.every(({ signature }) => signature === 't')).toBe(true);
  });

  test('of a new slice account for it and keep it through the first step of a shutdown', () => {
    const properties = sliceProperties(UNIT, {}).map(({ name, signature, value }) => `${name} ${signature} ${value}`);
    expect(properties).toContain('DefaultDependencies b false');
    for (const what of ['CPU', 'Memory', 'Tasks', 'IO']) expect(properties).toContain(`${what}Accounting b true`);
  });

  test('are sent to the manager on the system bus', () => {
    expect(managerCall('StopUnit', 'ss', UNIT, 'replace').join(' ')).toBe(
      `--system --quiet call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StopUnit ss ${UNIT} replace`,
    );
  });

  test('belong to the unit that a path’s last component names', () => {
    expect(sliceUnit(POD)).toBe(UNIT);
  });
});

describe('slices', () => {
  /** A systemd that refuses the methods in `refusing`, each with its words. */
  function systemd(refusing: Record<string, string> = {}) {
    const calls: string[] = [];
    const run: Exec = async (file, args) => {
      const method = args[6] ?? '';
      calls.push(`${file} ${args.slice(6).join(' ')}`);
      const words = refusing[method];
      const result: ExecResult = {
        ...{ code: words === undefined ? 0 : 1, signal: null, timedOut: false },
        ...{ stdout: '', stderr: words === undefined ? '' : `Call failed: ${words}\n` },
      };
      return result;
    };
    return { calls, slices: createSystemdSlices({ tracer: new Tracer(), run }) };
  }
  const exists = { StartTransientUnit: `Unit ${UNIT} already exists.` };

  test('are started as transient units with their limits', async () => {
    const { calls, slices } = systemd();
    await slices.ensure(POD, { memoryBytes: 5 });
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatch(
      /^busctl StartTransientUnit ssa\(sv\)a\(sa\(sv\)\) kubepods-burstable-pod1_2\.slice replace 7 /,
    );
    expect(calls[0]).toMatch(/ MemoryMax t 5 0$/);
  });

  test('that have these limits already cost no call', async () => {
    const { calls, slices } = systemd();
    await slices.ensure(POD, { memoryBytes: 5 });
    await slices.ensure(POD, { memoryBytes: 5 });
    expect(calls).toHaveLength(1);
    await slices.ensure(POD, { memoryBytes: 6 });
    expect(calls).toHaveLength(2);
  });

  test('that are there from before get their limits at run time, and are started if they were not', async () => {
    const { calls, slices } = systemd(exists);
    await slices.ensure(POD, { memoryBytes: 5 });
    expect(calls.slice(1)).toEqual([
      `busctl SetUnitProperties sba(sv) ${UNIT} true 1 MemoryMax t 5`,
      `busctl StartUnit ss ${UNIT} replace`,
    ]);
  });

  test('that systemd refuses are reported with its output, and retried next time', async () => {
    const { calls, slices } = systemd({ ...exists, SetUnitProperties: 'Value out of range' });
    const failure = /does not take the slice .*already exists.*Value out of range/;
    await expect(slices.ensure(POD, { memoryBytes: 5 })).rejects.toThrow(failure);
    await expect(slices.ensure(POD, { memoryBytes: 5 })).rejects.toThrow(failure);
    expect(calls).toHaveLength(4);
  });

  test('that are stopped are started anew when they are wanted again', async () => {
    const { calls, slices } = systemd();
    await slices.ensure(POD, { memoryBytes: 5 });
    await slices.stop(POD);
    await slices.ensure(POD, { memoryBytes: 5 });
    expect(calls.map((call) => call.split(' ')[1])).toEqual(['StartTransientUnit', 'StopUnit', 'StartTransientUnit']);
  });

  test('that are not there are stopped without a word', async () => {
    const { slices } = systemd({ StopUnit: `Unit ${UNIT} not loaded.` });
    await expect(slices.stop(POD)).resolves.toBeUndefined();
  });

  test('that systemd does not stop are an error', async () => {
    const { slices } = systemd({ StopUnit: 'Access denied' });
    await expect(slices.stop(POD)).rejects.toThrow(/StopUnit .*: Call failed: Access denied/);
  });
});
