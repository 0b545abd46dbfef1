// What the machine says about cgroups: the kernel's files and systemd's units.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';

const MOUNT = '/sys/fs/cgroup';
/** For giving up only: emulation on a busy host has no pace to rely on. */
const PATIENCE_MS = 10 * 60_000;

export function cgroupExists(path: string): boolean {
  return existsSync(join(MOUNT, path));
}

export function cgroupDirectory(path: string): string {
  return join(MOUNT, path);
}

export function cgroupChildren(path: string): readonly string[] {
  return readdirSync(join(MOUNT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}

/** `cat` of a cgroup's files, by "path/file". */
export function cgroupFiles(path: string, ...files: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    files.map((file) => [`${MOUNT}${path}/${file}`, readFileSync(join(MOUNT, path, file), 'utf8').trim()]),
  );
}

/** A counter of a flat keyed file: nr_throttled of cpu.stat. */
export function counter(path: string, file: string, key: string): number {
  const text = readFileSync(join(MOUNT, path, file), 'utf8');
  const line = text.split('\n').find((entry) => entry.startsWith(`${key} `));
  if (line === undefined) throw new Error(`${file} of ${path} has no ${key}: ${text}`);
  return Number(line.slice(key.length + 1));
}

/** `systemctl show`, by "unit/Property". */
export async function unitProperties(unit: string, ...names: readonly string[]): Promise<Record<string, string>> {
  const text = await execOk('systemctl', ['show', unit, ...names.map((name) => `--property=${name}`)]);
  const lines = text.split('\n').filter((line) => line.includes('='));
  return Object.fromEntries(
    lines.map((line) => [`${unit}/${line.slice(0, line.indexOf('='))}`, line.slice(line.indexOf('=') + 1)]),
  );
}

/** Units of pods that systemd has in memory. */
export async function kubepodsUnits(): Promise<readonly string[]> {
  const words = ['list-units', '--all', '--plain', '--no-legend', 'kubepods*', 'cri-containerd-*', 'docker-*.scope'];
  const text = await execOk('systemctl', words);
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s+/)[0] ?? '')
    .filter((unit) => unit !== '');
}

export async function eventually<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  let trouble = '';
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      trouble = '';
    } catch (error) {
      trouble = `: ${errorMessage(error)}`;
    }
    if (performance.now() > deadline) throw new Error(`waited ${PATIENCE_MS / 60_000} minutes for ${what}${trouble}`);
    await systemClock.sleep(500);
  }
}
