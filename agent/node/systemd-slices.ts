// The systemd cgroup driver's other half: pods' cgroups as transient slice units, so that systemd has their limits
// and does not overwrite what we write (it rewrites every unit's files when it reloads). Calls systemd by busctl;
// knows nothing of pods, and never touches the hierarchy itself.

import { existsSync } from 'node:fs';
import { type Exec, exec } from '../../lib/exec.ts';
import type { Tracer } from '../../lib/trace.ts';
import { type CgroupLimits, cpuWeight } from './cgroup-limits.ts';

/** D-Bus's way of saying "no limit": systemd's infinity in a 64-bit property. */
const INFINITY = '18446744073709551615';
const DEFAULT_PERIOD_US = 100_000;
/** systemd rounds quotas to this; rounded up here, so that no pod gets less than requested (as runc does). µs per s. */
const QUOTA_GRAIN_US = 10_000;
const CALL_MS = 30_000;

export interface SliceProperty {
  readonly name: string;
  /** D-Bus signature and the value's words, as busctl takes them. */
  readonly signature: 't' | 'b' | 's';
  readonly value: string;
}

/** The figures as systemd's slice properties (systemd.resource-control(5)). What is absent is left as it is. Pure. */
export function limitProperties(limits: CgroupLimits): readonly SliceProperty[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes, pids } = limits;
  const properties: SliceProperty[] = [];
  const add = (name: string, value: string): void => void properties.push({ name, signature: 't', value });
  if (cpuShares !== undefined) add('CPUWeight', String(cpuWeight(cpuShares)));
  if (cpuQuotaUs !== undefined) {
    const period = cpuPeriodUs ?? DEFAULT_PERIOD_US;
    add('CPUQuotaPeriodUSec', String(period));
    const perSecond = Math.ceil((cpuQuotaUs * 1_000_000) / period / QUOTA_GRAIN_US) * QUOTA_GRAIN_US;
    add('CPUQuotaPerSecUSec', cpuQuotaUs < 0 ? INFINITY : String(perSecond));
  }
  if (memoryBytes !== undefined) add('MemoryMax', memoryBytes < 0 ? INFINITY : String(memoryBytes));
  if (pids !== undefined) add('TasksMax', pids < 0 ? INFINITY : String(pids));
  return properties;
}

/** What a new slice has whatever its limits: accounted for, and not stopped at the first step of a shutdown. Pure. */
export function sliceProperties(unit: string, limits: CgroupLimits): readonly SliceProperty[] {
  const yes = (name: string): SliceProperty => ({ name, signature: 'b', value: 'true' });
  return [
    { name: 'Description', signature: 's', value: `nodelet pods ${unit}` },
    { name: 'DefaultDependencies', signature: 'b', value: 'false' },
    ...['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', 'IOAccounting'].map(yes),
    ...limitProperties(limits),
  ];
}

function words(properties: readonly SliceProperty[]): readonly string[] {
  return [String(properties.length), ...properties.flatMap(({ name, signature, value }) => [name, signature, value])];
}

const MANAGER = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager'] as const;

/** busctl's words for one call to systemd's manager. Pure. */
export function managerCall(method: string, signature: string, ...args: readonly string[]): readonly string[] {
  return ['--system', '--quiet', 'call', ...MANAGER, method, signature, ...args];
}

export interface SystemdSlices {
  /** The unit exists, is active and has these limits. Idempotent; a call without a change sends nothing. */
  ensure(path: string, limits: CgroupLimits): Promise<void>;
  /** Stops the unit and what runs in it; its cached limits are dropped. No error for a missing unit. */
  stop(path: string): Promise<void>;
}

/** Whether this machine's PID 1 is systemd: the check of sd_booted(3). */
export function systemdRuns(): boolean {
  return existsSync('/run/systemd/system');
}

/** The unit of a cgroup path: its last component, which in a slice's name holds all those above. Pure. */
export function sliceUnit(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function createSystemdSlices(options: { readonly tracer: Tracer; readonly run?: Exec }): SystemdSlices {
  const { tracer, run = exec } = options;
  /** Limits as systemd last got them, by unit. */
  const lastProperties = new Map<string, string>();

  async function call(method: string, signature: string, ...args: readonly string[]): Promise<string | undefined> {
    const result = await run('busctl', managerCall(method, signature, ...args), { timeoutMs: CALL_MS });
    if (result.code === 0) return undefined;
    const ended = result.timedOut ? `no answer in ${CALL_MS / 1000} s` : `exit ${result.code ?? result.signal}`;
    return `${method} ${args[0] ?? ''}: ${result.stderr.trim() || ended}`;
  }

  async function start(unit: string, limits: CgroupLimits): Promise<void> {
    const properties = words(sliceProperties(unit, limits));
    const refused = await call('StartTransientUnit', 'ssa(sv)a(sa(sv))', unit, 'replace', ...properties, '0');
    if (refused === undefined) return;
    // It is there already: from before a restart of ours, or made as another slice's parent. A unit's limits are set
    // at run time only and do not survive a boot.
    const change = words(limitProperties(limits));
    const unchanged = await call('SetUnitProperties', 'sba(sv)', unit, 'true', ...change);
    const stopped = unchanged ?? (await call('StartUnit', 'ss', unit, 'replace'));
    if (stopped !== undefined) throw new Error(`systemd does not take the slice ${unit}: ${refused}; ${stopped}`);
  }

  return {
    async ensure(path, limits) {
      const unit = sliceUnit(path);
      const text = JSON.stringify(limits);
      if (lastProperties.get(unit) === text) return;
      await tracer.span('cgroup', 'ensureSlice', { unit }, () => start(unit, limits));
      lastProperties.set(unit, text);
    },

    async stop(path) {
      const unit = sliceUnit(path);
      lastProperties.delete(unit);
      await tracer.span('cgroup', 'stopSlice', { unit }, async () => {
        const refused = await call('StopUnit', 'ss', unit, 'replace');
        if (refused !== undefined && !/not loaded/.test(refused))
          throw new Error(`systemd keeps the slice: ${refused}`);
      });
    },
  };
}
