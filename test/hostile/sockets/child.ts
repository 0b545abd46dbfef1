// A process of the campaign `descriptors` that may open few files or has no inotify, and is controlled by messages.
// It holds both servers, or the agent's parts that watch directories.

import { closeSync, openSync } from 'node:fs';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ConfWatcher } from '../../../agent/network/conf-watcher.ts';
import { createDescriptorCheck } from '../../../agent/node/descriptors.ts';
import { createLogReader } from '../../../agent/runtime/logs/read-logs.ts';
import { createFilePodSource } from '../../../agent/sources/file-source.ts';
import { createPluginWatcher } from '../../../csi/registration.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage, isErrno } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { type Servers, startServers } from './servers.ts';

const [directory = ''] = process.argv.slice(2);
const opened: number[] = [];
const check = createDescriptorCheck();
let servers: Servers | undefined;

/** Every descriptor that there is. */
function fill(): number {
  try {
    for (;;) opened.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if (!isErrno(error, 'EMFILE')) throw error;
  }
  return opened.length;
}

/** What an agent does for a pod all the time: programs, files, the mount table. */
async function work(): Promise<void> {
  const results = await Promise.all(
    Array.from({ length: 4 }, () => exec('cat', ['/proc/self/mountinfo'], { timeoutMs: 60_000 })),
  );
  for (const { code, stdout } of results) if (code !== 0 || stdout === '') throw new Error('a program failed');
  await writeFileAtomic(join(directory, 'state'), String(performance.now()), 0o600);
}

/** Sees a change with each part of the agent that waits for inotify; resolves with the names of those that did. */
async function watchers(): Promise<readonly string[]> {
  const at = (name: string): string => join(directory, name);
  await Promise.all(['manifests', 'cni', 'plugins'].map((name) => mkdir(at(name), { recursive: true })));
  await writeFile(at('0.log'), '');
  const seen = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const see = (name: string): void => {
    seen.add(name);
    if (seen.size === 4) resolve();
  };
  const log = (): void => undefined;
  const clock = systemClock;
  const source = createFilePodSource({ path: at('manifests'), nodeName: 'n', checkMs: 3_600_000, clock, log });
  source.start((pods) => (pods.size > 0 ? see('manifests') : undefined));
  const conf = new ConfWatcher(
    at('cni'),
    () => see('cni'),
    () => undefined,
    clock,
  );
  await conf.start();
  const plugins = createPluginWatcher({ directory: at('plugins'), handlers: {}, clock, tracer: new Tracer(), log });
  await plugins.start();
  const stop = new AbortController();
  const options = { follow: true, timestamps: false };
  const following = (async () => {
    for await (const chunk of createLogReader(clock).readLogs(at('0.log'), options, () => true, stop.signal)) {
      if (chunk.length > 0) see('logs');
    }
  })();
  await writeFile(
    at('manifests/a.yaml'),
    'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: main, image: nginx}]}\n',
  );
  await writeFile(at('cni/10.conflist'), '{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"one"}]}');
  await appendFile(at('0.log'), '2024-01-02T03:04:05.000000006Z stdout F line\n');
  // A connection shows that the socket was found; registration is another matter.
  const socket = createServer((caller) => {
    see('plugins');
    caller.destroy();
  });
  await new Promise<void>((listening) => socket.listen(at('plugins/plugin.sock'), listening));
  await Promise.race([promise, clock.sleep(100_000)]);
  stop.abort();
  source.stop();
  conf.close();
  plugins.close();
  socket.close();
  await following;
  return [...seen].sort();
}

const COMMANDS: Readonly<Record<string, () => unknown>> = {
  start: async () => {
    servers = await startServers(directory);
    return servers.targets.map(({ port }) => port);
  },
  ask: () => Promise.all((servers?.targets ?? []).map((target) => target.ask())).then(() => 'answered'),
  work: () => work().then(() => 'done'),
  fill: () => fill(),
  free: () => {
    for (const fd of opened.splice(0)) closeSync(fd);
    return 'freed';
  },
  problem: () => check() ?? '',
  // Processor time and time, both in ms.
  usage: () => [(process.cpuUsage().user + process.cpuUsage().system) / 1000, performance.now()],
  watchers: () => watchers(),
};

process.on('message', (command: unknown) => {
  const run = typeof command === 'string' && Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  void (async () => {
    if (run === undefined) throw new Error(`no command ${String(command)}`);
    return await run();
  })().then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: errorMessage(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
