// `nodelet up` and `nodelet down` as a person runs them: real processes, real signals, and a machine that is as before.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newestSnapshot } from '../../../apiserver/storage/snapshots.ts';
import { readPidFile } from '../../../cli/lab/child.ts';
import { runDown } from '../../../cli/lab/down.ts';
import { LAB_PROCESSES, type LabPaths, type LabProcess, labPaths } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { isAlive } from '../../../lib/processes.ts';
import { fullLog } from '../support/full-log.ts';
import { labNames, SETTLE_MS } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

interface UpOptions {
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly nohup?: boolean;
  /** A file for its output; by default the test reads it. */
  readonly stdout?: string;
}

/** One may end because another was killed. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}

/** A `nodelet up` that runs, and what it has printed. */
class Up {
  readonly paths: LabPaths;
  readonly child: ChildProcess;
  output = '';
  readonly exited: Promise<number | null>;
  #heard = Promise.withResolvers<void>();

  constructor(root: string, options: UpOptions = {}) {
    this.paths = labPaths(root);
    const stdout = options.stdout === undefined ? 'pipe' : openSync(options.stdout, 'a');
    const [command, ...words] = [...(options.nohup === true ? ['nohup'] : []), NODELET, 'up', '--root', root];
    this.child = spawn(command ?? NODELET, [...words, '--images', 'build', ...(options.flags ?? [])], {
      env: { ...process.env, ...options.env },
      stdio: ['ignore', stdout, 'pipe'],
    });
    if (stdout !== 'pipe') closeSync(stdout);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
        this.#heard.resolve();
        this.#heard = Promise.withResolvers();
      });
    }
    // Not `exit`: its last output may not have been read by then.
    this.exited = once(this.child, 'close').then(([code]) => (typeof code === 'number' ? code : null));
  }

  /** Resolves as soon as it has printed `text`. */
  async says(text: string, timeoutMs = 600_000): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => over.reject(new Error(`nodelet up has not printed "${text}":\n${this.output}`)),
      timeoutMs,
    );
    try {
      while (!this.output.includes(text)) {
        if (this.child.exitCode !== null)
          throw new Error(`nodelet up ended with ${this.child.exitCode}:\n${this.output}`);
        await Promise.race([this.exited, this.#heard.promise, over.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  kubectl(...args: string[]): Promise<string> {
    return execOk('kubectl', ['--kubeconfig', this.paths.kubeconfig, ...args], { timeoutMs: 200_000 });
  }

  async pid(name: LabProcess): Promise<number> {
    const id = await readPidFile(this.paths.pidFile(name));
    if (id === undefined || !(await isAlive(id))) throw new Error(`${name} does not run`);
    return id.pid;
  }
}

const down = (root: string) => exec(NODELET, ['down', '--root', root], { timeoutMs: 200_000 });

// Each starts up to three labs, one after the other.
describe('a lab', { timeout: 1_800_000 }, () => {
  let directory: string;
  let before: MachineSnapshot;
  const ups: Up[] = [];

  const up = (root: string, options: UpOptions = {}): Up => {
    const started = new Up(root, options);
    ups.push(started);
    return started;
  };
  const differences = (settleMs: number, ...roots: string[]): Promise<readonly string[]> =>
    compareWithMachine(before, {
      directories: [directory],
      mentioning: roots.flatMap((root) => labNames(labPaths(root))),
      settleMs,
    });
  const leftOf = (...roots: string[]): Promise<readonly string[]> => differences(SETTLE_MS, ...roots);

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-up-'));
    before = await snapshotMachine({ directories: [directory] });
  });

  afterEach(async () => {
    for (const each of ups.splice(0)) {
      if (each.child.exitCode === null && each.child.signalCode === null) {
        each.child.kill('SIGKILL');
        await each.exited;
      }
      // Only for a test that failed: in this process, since the command's own takes a third of a second to load.
      await runDown({ root: each.paths.root, say: () => undefined });
    }
    await rm(directory, { recursive: true, force: true });
  });

  it('prints where its kubeconfig is and what to type next, runs a pod, and leaves nothing after Ctrl-C', async () => {
    const root = join(directory, 'a');
    const lab = up(root);
    await lab.says('Ctrl-C stops the lab');
    expect(lab.output).toContain(`export KUBECONFIG=${lab.paths.kubeconfig}`);
    expect(lab.output).toMatch(/node \S+ is Ready/);
    expect((await lab.kubectl('get', 'nodes', '--no-headers')).split(/\s+/)[1]).toBe('Ready');
    expect((await exec(NODELET, ['kubeconfig', '--root', root])).stdout).toBe(
      await readFile(lab.paths.kubeconfig, 'utf8'),
    );
    await lab.kubectl('run', 'web', '--image=nginx:stable', '--port=80');
    await lab.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    // npm passes Ctrl-C on to a process that the terminal has sent it to already: while the pod's agent stands still, it takes down.
    const agent = await lab.pid('agent');
    process.kill(agent, 'SIGSTOP');
    lab.child.kill('SIGINT');
    await lab.says('stopping');
    lab.child.kill('SIGINT');
    await lab.says('taking everything down already');
    signalIfThere(agent, 'SIGCONT');
    expect(await lab.exited).toBe(0);
    expect(lab.output).toContain('stopped; nothing is left');
    expect(await leftOf(root)).toEqual([]);
    expect(await labProcesses(root)).toEqual([]);
  });

  it('that is stopped while it starts leaves nothing either', async () => {
    const root = join(directory, 'a');
    // The node is not Ready as long as its agent does not begin.
    const idler = join(directory, 'idler.mjs');
    const idle = 'await new Promise(() => setInterval(() => undefined, 1_000_000));';
    await writeFile(idler, `if (process.argv[2] === 'agent') ${idle}\n`);
    const lab = up(root, { env: { NODE_OPTIONS: `--import=${idler}` } });
    await lab.says('containerd serves');
    lab.child.kill('SIGTERM');
    expect(await lab.exited).toBe(0);
    expect(lab.output).toContain('stopped while starting');
    expect(await leftOf(root)).toEqual([]);
  });

  it('of which everything was killed is cleaned up by the next up, which reports it, and by down, repeatedly', async () => {
    const root = join(directory, 'a');
    const lab = up(root);
    await lab.says('The lab is up.');
    expect(lab.output).not.toContain('did not end in order');
    await lab.kubectl('run', 'web', '--image=nginx:stable', '--port=80');
    await lab.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    const programs = await Promise.all(LAB_PROCESSES.map(async (name) => readPidFile(lab.paths.pidFile(name))));
    lab.child.kill('SIGKILL');
    await lab.exited;
    // They end by themselves: their supervisor is gone. Pods go on, as under a kubelet that has died.
    const alive = (): Promise<readonly boolean[]> =>
      Promise.all(programs.map((id) => (id === undefined ? Promise.resolve(true) : isAlive(id))));
    await expect.poll(alive).toEqual(LAB_PROCESSES.map(() => false));
    const left = (await labProcesses(root)).map((entry) => entry.comm);
    expect(left.some((comm) => comm.startsWith('containerd-shim'))).toBe(true);
    expect(left).toContain('nginx');

    const second = up(root);
    await second.says('The lab is up.');
    expect(second.output).toMatch(
      /an earlier lab under \S+ did not end in order: removing processes (\d+ \([^)]+\), )*\d+ \(containerd-shim\)/,
    );
    second.child.kill('SIGKILL');
    await second.exited;
    for (const entry of await labProcesses(root)) signalIfThere(entry.pid, 'SIGKILL');
    expect(await differences(0, root)).not.toEqual([]);
    const first = await down(root);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toBe(`nothing of the lab under ${root} is left\n`);
    expect(await leftOf(root)).toEqual([]);
    expect((await down(root)).code).toBe(0);
  });

  it('whose files were deleted under a running pod is cleaned up by down', async () => {
    const root = join(directory, 'a');
    const lab = up(root);
    await lab.says('The lab is up.');
    await lab.kubectl('run', 'web', '--image=nginx:stable');
    await lab.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    lab.child.kill('SIGKILL');
    await lab.exited;
    for (const path of [lab.paths.stateFile, lab.paths.pidDir, lab.paths.cni.cacheDir, lab.paths.cni.confDir]) {
      await rm(path, { recursive: true, force: true });
    }
    expect((await down(root)).code).toBe(0);
    expect(await labProcesses(root)).toEqual([]);
    await expect.poll(() => differences(0, root)).toEqual([]);
  });

  it('whose log is on a full disk goes on, and can be taken down while it runs: up ends in order', async () => {
    const root = join(directory, 'a');
    const log = await fullLog(join(directory, 'log'), 0);
    const lab = up(root, { stdout: log, nohup: true });
    await expect
      .poll(async () => (await exec('kubectl', ['--kubeconfig', lab.paths.kubeconfig, 'get', 'nodes'])).stdout, {
        timeout: 600_000,
        interval: 300,
      })
      .toMatch(/ Ready /);
    expect((await readFile(log, 'utf8')).trim()).toBe('');
    // Its terminal goes, and it was started to outlive that. Without, see "runs beside another one".
    lab.child.kill('SIGHUP');
    const result = await down(root);
    await execOk('umount', [join(directory, 'log')]);
    expect(result.code).toBe(0);
    expect(result.stdout).toContain(`stopping the lab that process ${lab.child.pid} runs`);
    expect(await lab.exited).toBe(0);
    expect(await leftOf(root)).toEqual([]);
  });

  it('starts a process that dies again and reports it in one line; pods keep running', async () => {
    const root = join(directory, 'a');
    const thrower = join(directory, 'thrower.mjs');
    await writeFile(
      thrower,
      "process.on('SIGUSR2', () => { setTimeout(() => { throw new Error('thrown by the test'); }, 0); });",
    );
    const lab = up(root, { env: { NODE_OPTIONS: `--import=${thrower}` } });
    await lab.says('The lab is up.');
    await lab.kubectl('run', 'web', '--image=nginx:stable');
    await lab.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    for (const name of ['apiserver', 'agent', 'containerd'] as const) {
      process.kill(await lab.pid(name), 'SIGKILL');
      await lab.says(`${name} ended (SIGKILL)`);
    }
    await expect
      .poll(async () => (await Promise.all(LAB_PROCESSES.map((name) => lab.pid(name).catch(() => 0)))).includes(0), {
        timeout: 100_000,
      })
      .toBe(false);
    await expect
      .poll(
        async () =>
          (
            await exec('kubectl', [
              ...['--kubeconfig', lab.paths.kubeconfig, 'get', 'pod', 'web', '-o'],
              'jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}',
            ])
          ).stdout,
        { timeout: 100_000, interval: 300 },
      )
      .toBe('Running 0');
    await lab.kubectl('wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=110s');
    // An error that nothing has caught ends it in order, too.
    lab.child.kill('SIGUSR2');
    expect(await lab.exited).toBe(1);
    expect(lab.output).toContain('Error: thrown by the test');
    expect(lab.output).toContain('nodelet: thrown by the test: taking everything down');
    expect(await leftOf(root)).toEqual([]);
  });

  it('runs beside another one: own root, ports and addresses, and the end of one does not touch the other', async () => {
    const [first, second] = [join(directory, 'a'), join(directory, 'b')];
    const [a, b] = [up(first), up(second)];
    await Promise.all([a.says('The lab is up.'), b.says('The lab is up.')]);
    const states = await Promise.all(
      [a, b].map(async (lab) => JSON.parse(await readFile(lab.paths.stateFile, 'utf8'))),
    );
    for (const key of ['apiserverPort', 'kubeletPort', 'subnet']) expect(states[0][key]).not.toBe(states[1][key]);
    const third = await exec(NODELET, ['up', '--root', first]);
    expect([third.code, third.stderr]).toEqual([1, `nodelet: the root ${first} is in use by process ${a.child.pid}\n`]);
    for (const lab of [a, b]) await lab.kubectl('run', 'web', '--image=nginx:stable');
    for (const lab of [a, b]) await lab.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    a.child.kill('SIGHUP');
    expect(await a.exited).toBe(0);
    expect(await leftOf(first)).toEqual([]);
    expect(await readPidFile(a.paths.lockFile)).toBeUndefined();
    expect(await b.kubectl('exec', 'web', '--', 'wget', '-q', '-O-', 'http://127.0.0.1/')).toContain('nginx');
    b.child.kill('SIGQUIT');
    expect(await b.exited).toBe(0);
    expect(await leftOf(first, second)).toEqual([]);
  });

  it('with --keep has its objects and images again at the next start, from a snapshot when the store is damaged, which prints why it cannot start', async () => {
    const root = join(directory, 'a');
    const first = up(root, { flags: ['--keep'] });
    await first.says('The lab is up.');
    await first.kubectl('create', 'configmap', 'kept', '--from-literal=a=b');
    await first.kubectl('run', 'web', '--image=nginx:stable');
    await first.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    first.child.kill('SIGINT');
    expect(await first.exited).toBe(0);
    expect(first.output).toContain(`stopped; ${root} is kept`);
    expect(await labProcesses(root)).toEqual([]);
    // A store that is damaged while the lab is down: its snapshot of the stop has everything.
    await writeFile(
      first.paths.storeFile,
      'this is no database, and long enough to be seen as a broken one'.repeat(50),
    );
    const damaged = up(root);
    expect(await damaged.exited).toBe(1);
    expect(damaged.output).toMatch(
      /nodelet: apiserver ended 4 times while the lab started: nodelet: the API server's store \S+ is not a database: .*--restore \S+store-\d+\.db$/m,
    );
    const second = up(root, { flags: ['--restore', newestSnapshot(first.paths.storeFile) ?? 'none'] });
    await second.says('The lab is up.');
    expect(second.output).toMatch(/store was restored from \S+; what was there is \S+replaced-\d+\.db/);
    expect(await second.kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}')).toBe('b');
    expect(second.output).not.toContain('imported');
    await second.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=110s');
    second.child.kill('SIGINT');
    expect(await second.exited).toBe(0);
    expect(await leftOf(root)).toEqual([]);
  });
});

describe('a lab that cannot start prints the reason in one line and exits with 1', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-up-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const listen = async (): Promise<{ server: Server; port: number }> => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    const address = server.address();
    return { server, port: typeof address === 'object' && address !== null ? address.port : 0 };
  };

  it('when a requested port is taken', async () => {
    const { server, port } = await listen();
    try {
      const result = await exec(NODELET, ['up', '--root', join(directory, 'a'), '--apiserver-port', String(port)]);
      expect(result.code).toBe(1);
      expect(result.stderr).toMatch(new RegExp(`^nodelet: port ${port} for the API server is taken[^\\n]*\\n$`));
    } finally {
      server.close();
    }
  });

  it('when there is no containerd', async () => {
    const env = { ...process.env, NODELET_CONTAINERD_BIN: undefined };
    // The wrapper itself needs a PATH with sh's tools; give it one without containerd.
    const bin = join(directory, 'bin');
    await execOk('mkdir', ['-p', bin]);
    for (const tool of ['readlink', 'dirname', 'mkdir']) await execOk('ln', ['-s', `/usr/bin/${tool}`, bin]);
    const without = await exec(NODELET, ['up', '--root', join(directory, 'a')], { env: { ...env, PATH: bin } });
    expect([without.code, without.stderr]).toEqual([1, 'nodelet: containerd is not installed: run "npm run setup"\n']);
  });

  it('when it is not root', async () => {
    const result = await exec('setpriv', [
      '--reuid=65534',
      '--clear-groups',
      NODELET,
      'up',
      '--root',
      join(directory, 'a'),
    ]);
    expect([result.code, result.stderr.split('\n').length]).toEqual([1, 2]);
    expect(result.stderr).toMatch(/^nodelet: must be root/);
  });
});
