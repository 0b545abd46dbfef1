// Plugins as functions behind the Exec seam, with every invocation on record.

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { CniRuntime, type CniRuntimeOptions } from '../../../cni/runtime.ts';
import type { Attachment, JsonObject, NetworkConfigList } from '../../../cni/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { Exec, ExecResult } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';

export interface PluginCallRecord {
  readonly type: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly netconf: JsonObject;
}

/** What a fake plugin does with one call; undefined is success without output. */
export type FakePlugin = (call: PluginCallRecord) => FakeAnswer | Promise<FakeAnswer>;
type FakeAnswer = Partial<ExecResult> | JsonObject | undefined;

const FINISHED: ExecResult = { code: 0, signal: null, timedOut: false, stdout: '', stderr: '' };

export const fails = (code: number, msg: string): Partial<ExecResult> => ({
  code: 1,
  stdout: JSON.stringify({ cniVersion: '1.0.0', code, msg }),
});

export interface FakeHost {
  readonly calls: PluginCallRecord[];
  readonly exec: Exec;
  readonly dir: string;
  readonly binDir: string;
  readonly cacheDir: string;
  runtime(more?: Partial<CniRuntimeOptions>): CniRuntime;
  /** "ADD one", "DEL two", … in the order they ran. */
  names(): string[];
}

export async function fakeHost(plugins: Readonly<Record<string, FakePlugin>>): Promise<FakeHost> {
  const dir = await mkdtemp(join(tmpdir(), 'nodelet-unit-cni-'));
  for (const type of Object.keys(plugins)) await writeFile(join(dir, type), '#!/bin/sh\n', { mode: 0o755 });
  const calls: PluginCallRecord[] = [];
  const exec: Exec = async (file, _args, options) => {
    const type = basename(file);
    const env = options?.env ?? {};
    const call = { type, command: env['CNI_COMMAND'] ?? '', env, netconf: JSON.parse(String(options?.stdin)) };
    calls.push(call);
    const messages = await plugins[type]?.(call);
    if (messages === undefined) return FINISHED;
    if ('code' in messages || 'stdout' in messages || 'timedOut' in messages) return { ...FINISHED, ...messages };
    return { ...FINISHED, stdout: JSON.stringify(messages) };
  };
  const cacheDir = join(dir, 'cache');
  return {
    calls,
    exec,
    dir,
    binDir: dir,
    cacheDir,
    runtime: (more = {}) =>
      new CniRuntime({ binDirs: [dir], cacheDir, tracer: new Tracer(), clock: systemClock, exec, ...more }),
    names: () => calls.map((call) => `${call.command} ${call.type}`),
  };
}

export const chainOf = (cniVersion: string, ...plugins: (string | JsonObject)[]): NetworkConfigList => ({
  name: 'net',
  cniVersion,
  disableCheck: false,
  disableGC: false,
  plugins: plugins.map((plugin) => (typeof plugin === 'string' ? { type: plugin } : { type: '', ...plugin })),
});

export const pod = (more: Partial<Attachment> = {}): Attachment => ({
  containerId: 'c1',
  netns: '/proc/self/ns/net',
  ifName: 'eth0',
  args: 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_UID=u',
  capabilityArgs: {},
  ...more,
});

/** A result of version 1.0.0 with one address. */
export const answer = (address: string): JsonObject => ({ cniVersion: '1.0.0', ips: [{ address }], dns: {} });
