// logind through systemd's tools, with programs of the tests' own in their place: the requests, the signals, and that
// nothing of it outlives the agent. The real ones are called in the virtual machine.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogind } from '../../../../agent/shutdown/logind.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { exec } from '../../../../lib/exec.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';

let directory: string;
const path = process.env['PATH'] ?? '';

beforeEach(() => {
  spans.length = 0;
  directory = mkdtempSync(join(tmpdir(), 'nodelet-logind-'));
  process.env['PATH'] = `${directory}:${path}`;
});
afterEach(() => {
  process.env['PATH'] = path;
  rmSync(directory, { recursive: true, force: true });
});

function program(name: string, script: string): void {
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

const file = (name: string): string => join(directory, name);
const read = (name: string): string => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
const tracer = new Tracer();
const spans: Span[] = [];
tracer.subscribe((span) => spans.push(span));
const logind = () =>
  createLogind({ exec, tracer, clock: systemClock, dropIn: file('conf.d/99.conf'), log: () => undefined });
const runs = (pid: string): boolean => existsSync(`/proc/${pid.trim()}`);

it('a longer delay is asked for in a file of its own, which goes again', async () => {
  program(
    'busctl',
    `echo "$*" >>${file('calls')}
case $* in
*get-property*) if [ -e ${file('reloaded')} ]; then echo t 30000000; else echo t 5000000; fi ;;
*KillUnit*) if [ -e ${file('conf.d/99.conf')} ]; then touch ${file('reloaded')}; else rm -f ${file('reloaded')}; fi ;;
esac`,
  );
  const one = logind();
  expect(await one.inhibitDelayMs()).toBe(5_000);
  await one.allowDelay(29_500);
  expect(read('conf.d/99.conf')).toContain('[Login]\nInhibitDelayMaxSec=30\n');
  expect(await one.inhibitDelayMs()).toBe(30_000);
  expect(read('calls')).toContain('KillUnit ssi systemd-logind.service all 1');
  expect(spans).toContainEqual(
    expect.objectContaining({
      kind: 'systemd',
      name: 'busctl',
      outcome: 'ok',
      attributes: { args: expect.arrayContaining(['get-property', 'InhibitDelayMaxUSec']), exitCode: 0 },
    }),
  );
  await one.close();
  expect(existsSync(file('conf.d/99.conf'))).toBe(false);
  expect(await one.inhibitDelayMs()).toBe(5_000);
});

it('the lock is held by a program that ends when it is released', async () => {
  program('systemd-inhibit', `echo $$ >${file('pid')}; echo "$1 $2 $3 $4" >${file('how')}; shift 4; exec "$@"`);
  const lock = await logind().inhibit();
  expect(read('how').trim()).toBe(
    '--what=shutdown --mode=delay --who=kubelet --why=Kubelet needs time to handle node shutdown',
  );
  expect(runs(read('pid'))).toBe(true);
  expect(spans).toMatchObject([{ kind: 'systemd', name: 'systemd-inhibit', outcome: 'ok' }]);
  lock.release();
  await vi.waitFor(() => expect(runs(read('pid'))).toBe(false));
});

it('a lock that is refused rejects with the program’s words', async () => {
  program('systemd-inhibit', 'echo "Failed to inhibit: Access denied" >&2; exit 1');
  await expect(logind().inhibit()).rejects.toThrow('systemd-inhibit ended with 1: Failed to inhibit: Access denied');
  expect(spans).toMatchObject([{ name: 'systemd-inhibit', outcome: 'error' }]);
});

const MONITOR = `echo $$ >${'$'}0.pid; echo 'Monitoring bus message stream.' >&2`;

it('signals are received until the last subscriber leaves, and the monitor ends', async () => {
  program('busctl', `${MONITOR}\necho '{"member":"PrepareForShutdown","payload":{"data":[true]}}'\nexec sleep 1000`);
  const heard: boolean[] = [];
  const abort = new AbortController();
  const { ended } = await logind().watch((begins) => heard.push(begins), abort.signal);
  await vi.waitFor(() => expect(heard).toEqual([true]));
  expect(spans).toMatchObject([
    { kind: 'systemd', name: 'busctl', attributes: { args: expect.arrayContaining(['monitor']) } },
  ]);
  const pid = read('busctl.pid');
  expect(runs(pid)).toBe(true);
  abort.abort();
  await ended;
  expect(runs(pid)).toBe(false);
});

it('a monitor that ends is reported', async () => {
  program('busctl', `${MONITOR}\nsleep 0.2`);
  const { ended } = await logind().watch(() => undefined, new AbortController().signal);
  await ended;
});

it('a monitor that cannot begin rejects with its words', async () => {
  program('busctl', 'echo "Failed to connect to bus: No such file" >&2; exit 1');
  const watching = logind().watch(() => undefined, new AbortController().signal);
  await expect(watching).rejects.toThrow('busctl monitor ended: Failed to connect to bus: No such file');
});
