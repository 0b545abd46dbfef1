// A pod by hand with `nodelet crictl`, from runp to rmp, on a lab whose agent does not know of it: every command that
// changes something, the streams with and without a terminal, and what the runtime refuses.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isErrno } from '../../../lib/errors.ts';
import { type ExecOptions, type ExecResult, exec } from '../../../lib/exec.ts';
import { eventually } from '../agent/harness.ts';
import { criEndpoint, type TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** For giving up only. */
const LIMIT_MS = 120_000;

let lab: TestLab;
let directory: string;
let pod = '';
let container = '';
let socket: string;

const words = (args: readonly string[]): string[] => ['crictl', '--root', lab.root, '--timeout', '60s', ...args];
const tryCrictl = (args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> =>
  exec(NODELET, words(args), { timeoutMs: LIMIT_MS, ...options });

async function crictl(...args: string[]): Promise<string> {
  const result = await tryCrictl(args);
  expect(result, `${args.join(' ')}: ${result.stderr}`).toMatchObject({ code: 0 });
  return result.stdout;
}

/** One column's words of the table, by the header. */
function column(table: string, header: string): string[] {
  const [head = '', ...rows] = table.trimEnd().split('\n');
  const at = head.indexOf(header);
  return rows.map((row) => row.slice(at).split(/ {3}/)[0]?.trim() ?? '');
}

interface Running {
  readonly child: ChildProcess;
  /** stdout and stderr together. */
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

/** A command that goes on; it is ended with the test at the latest. */
const running: Running[] = [];
function start(file: string, args: readonly string[]): Running {
  const child = spawn(file, args, { stdio: 'pipe' });
  let output = '';
  const collect = (chunk: Buffer): void => {
    output += chunk.toString('utf8');
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const one = { child, output: () => output, ended };
  running.push(one);
  return one;
}

const says = (one: Running, text: string): Promise<true> =>
  eventually(`"${text}" in ${one.output()}`, () => (one.output().includes(text) ? true : undefined));

/** A connection to the machine's loopback that sends `text`, ends its side, and reads to the end. */
function talk(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const local = connect(port, '127.0.0.1');
    let answer = '';
    local.on('data', (chunk) => {
      answer += chunk.toString('utf8');
    });
    local.once('error', reject);
    local.once('end', () => resolve(answer));
    local.end(text);
  });
}

const SCRIPT = `
mkdir /www; echo served > /www/index.html; httpd -p 8080 -h /www
echo to-stdout; echo to-stderr >&2
while read line; do echo "got $line"; done
sleep 100000
`;

beforeAll(async () => {
  lab = await shareLab();
  socket = criEndpoint(lab);
  directory = await mkdtemp(join(tmpdir(), 'nodelet-crictl-'));
  const at = (name: string, text: string): Promise<void> => writeFile(join(directory, name), text);
  await at(
    'pod.yaml',
    `metadata: { name: by-hand, namespace: default, attempt: 1 }
log_directory: ${directory}
labels: { made: 1 }
linux: { cgroup_parent: ${lab.paths.cgroupRoot}/crictl }
`,
  );
  await at(
    'container.json',
    JSON.stringify({
      metadata: { name: 'shell' },
      image: { image: 'docker.io/library/busybox:stable' },
      command: ['sh', '-c', SCRIPT],
      log_path: 'shell/0.log',
      stdin: true,
      labels: { app: 'a' },
      linux: { resources: { memory_limit_in_bytes: 67108864 } },
    }),
  );
  await at('crictl.yaml', `# by hand\nruntime-endpoint: ${socket}\ntimeout: 60\n`);
});

afterAll(async () => {
  for (const { child, ended } of running) {
    child.kill('SIGKILL');
    await ended;
  }
  if (lab !== undefined) {
    const left = (await tryCrictl(['pods', '-q', '--name', '^by-hand$'])).stdout.split('\n').filter((id) => id !== '');
    if (left.length > 0) await tryCrictl(['rmp', '-f', ...left]);
  }
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  await lab?.stop();
});

test('runp, create and start make a pod that the lists show', async () => {
  pod = (await crictl('runp', join(directory, 'pod.yaml'))).trim();
  expect(pod).toMatch(/^[0-9a-f]{64}$/);
  const pods = await crictl('pods', '--label', 'made=1');
  expect(column(pods, 'POD ID')).toEqual([pod.slice(0, 13)]);
  expect(column(pods, 'STATE')).toEqual(['Ready']);
  const files = [join(directory, 'container.json'), join(directory, 'pod.yaml')];
  container = (await crictl('create', pod, ...files)).trim();
  expect(column(await crictl('ps', '-a', '--pod', pod), 'STATE')).toEqual(['Created']);
  expect((await crictl('ps', '-q', '--pod', pod)).trim()).toBe('');
  expect((await crictl('start', container)).trim()).toBe(container);
  // The runtime finds a container by the beginning of its id.
  expect((await crictl('ps', '-q', '--id', container.slice(0, 13))).trim()).toBe(container);
});

test('inspect opens the runtime’s own information, and a template takes pieces of it', async () => {
  const inspected = JSON.parse(await crictl('inspect', container));
  expect(inspected.status).toMatchObject({
    id: container,
    state: 'CONTAINER_RUNNING',
    metadata: { name: 'shell', attempt: 0 },
    finishedAt: '0001-01-01T00:00:00Z',
  });
  expect(inspected.info.pid).toBeGreaterThan(1);
  const template = '{{.info.pid}} {{if eq .status.state "CONTAINER_RUNNING"}}up{{end}} {{index .status.labels "app"}}';
  expect((await crictl('inspect', '-o', 'go-template', '--template', template, container)).trim()).toBe(
    `${inspected.info.pid} up a`,
  );
  expect(JSON.parse(await crictl('inspectp', pod)).status.network.ip).toMatch(/^10\.244\./);
});

test('exec runs commands with their output, input to its end, and exit code', async () => {
  expect(await crictl('exec', '-s', container, 'echo', 'hi')).toBe('hi\n\n\n');
  for (const transport of ['spdy', 'websocket']) {
    const script = 'echo out; echo err >&2; exit 3';
    const split = await tryCrictl(['exec', '--transport', transport, container, 'sh', '-c', script]);
    expect(split).toMatchObject({ code: 1, stdout: 'out\n' });
    expect(split.stderr).toMatch(
      /^err\nFATA\[\d+\] execing command in container \w+: command terminated with exit code 3\n/,
    );
  }
  // More than a frame, and cat ends only when its input does.
  const large = 'x'.repeat(300_000);
  expect(await tryCrictl(['exec', '-i', container, 'cat'], { stdin: large })).toMatchObject({ code: 0, stdout: large });
  const command = ['exec', '-i', '--transport', 'websocket', container, 'head', '-c', '300000'];
  expect(await tryCrictl(command, { stdin: large })).toMatchObject({ code: 0, stdout: large });
  const late = await tryCrictl(['exec', '-s', '--timeout', '1', container, 'sleep', '100']);
  expect(late.code).toBe(1);
  expect(late.stderr).toContain('code = DeadlineExceeded');
});

test('exec -it is a terminal of the user’s size, and gives it back', async () => {
  const command = `stty rows 33 cols 77; ${NODELET} ${words(['exec', '-it', container, 'sh']).join(' ')}; stty -a | tr ';' '\\n' | grep -w -e '-icanon' -e icanon`;
  const terminal = start('script', ['-qec', command, '/dev/null']);
  await says(terminal, '# ');
  terminal.child.stdin?.write('tty\n');
  await says(terminal, '/dev/pts/');
  // The size comes on a stream of its own.
  await eventually('the size of the terminal', () => {
    terminal.child.stdin?.write('stty size\n');
    return terminal.output().includes('33 77') ? true : undefined;
  });
  terminal.child.stdin?.write('exit 0\n');
  expect(await terminal.ended).toBe(0);
  // Raw mode is over.
  expect(terminal.output()).toMatch(/(^|[^-])icanon/m);
  const none = await tryCrictl(['exec', '-it', container, 'sh']);
  expect(none.stderr).toContain('input is not a terminal');
});

test('attach passes input on, and logs show what came of it, followed and in parts', async () => {
  const followed = start(NODELET, words(['logs', '-f', '-t', container]));
  await says(followed, 'to-stdout');
  const attached = start(NODELET, words(['attach', '-i', '--transport', 'websocket', container]));
  attached.child.stdin?.write('one\n');
  await says(attached, 'got one');
  await says(followed, 'got one');
  attached.child.kill('SIGINT');
  await attached.ended;
  const log = await tryCrictl(['logs', container]);
  expect(log).toMatchObject({ code: 0, stdout: 'to-stdout\ngot one\n', stderr: 'to-stderr\n' });
  expect(await crictl('logs', '--tail', '1', container)).toBe('got one\n');
  expect(await crictl('logs', '--stream', 'stderr', container)).toBe('');
  expect(await crictl('logs', '--since', '2000-01-01T00:00:00Z', container)).toBe('to-stdout\ngot one\n');
  expect(followed.output()).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]{18}\S* to-stdout$/m);
  followed.child.kill('SIGINT');
  await followed.ended;
});

test.each(['spdy', 'websocket'])(
  'port-forward over %s: connections one after the other, each to its end',
  async (transport) => {
    const forwarded = start(NODELET, words(['port-forward', '--transport', transport, pod, ':8080', ':9']));
    const port = await eventually('a port', () => {
      const found = /127\.0\.0\.1:(\d+) -> 8080/.exec(forwarded.output())?.[1];
      return found === undefined ? undefined : Number(found);
    });
    for (let turn = 0; turn < 3; turn++) expect(await talk(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/served\n$/);
    const closed = await eventually('the other port', () => {
      const found = /127\.0\.0\.1:(\d+) -> 9$/m.exec(forwarded.output())?.[1];
      return found === undefined ? undefined : Number(found);
    });
    // The port is closed: the local connection is closed, and the runtime's error is shown.
    await talk(closed, 'x').catch((error: unknown) => {
      if (!isErrno(error, 'ECONNRESET', 'EPIPE')) throw error;
    });
    await says(forwarded, 'an error occurred forwarding to port 9');
    expect(await talk(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/served\n$/);
    forwarded.child.kill('SIGINT');
    expect(await forwarded.ended).toBe(0);
  },
);

test('update changes limits, stats measure, and events come where the runtime has them', async () => {
  await crictl('update', '--memory', '134217728', container);
  const { pid } = JSON.parse(await crictl('inspect', container)).info;
  const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
  const path = /^\d+:(?:memory)?:(\/.*)$/m.exec(
    cgroups.split('\n').find((line) => /:memory:|^0::/.test(line)) ?? '',
  )?.[1];
  const limits = [`/sys/fs/cgroup/memory${path}/memory.limit_in_bytes`, `/sys/fs/cgroup${path}/memory.max`];
  const found = await Promise.any(limits.map((file) => readFile(file, 'utf8')));
  expect(found.trim()).toBe('134217728');
  const stats = await crictl('stats', '-s', '1', container);
  expect(column(stats, 'CONTAINER')).toEqual([container.slice(0, 13)]);
  expect(column(stats, 'CPU %')[0]).toMatch(/^\d+\.\d\d$/);
  expect(JSON.parse(await crictl('stats', '-o', 'json', container)).stats[0].attributes.id).toBe(container);
  const version = await crictl('version');
  const events = start(NODELET, words(['events']));
  if (/^RuntimeVersion: {2}v?1\.[0-6]\./m.test(version)) {
    expect(await events.ended).toBe(1);
    expect(events.output()).toContain('code = Unimplemented');
  }
});

test('the config file and the environment name the endpoint; --explain names the kubelet’s step', async () => {
  const byFile = await exec(NODELET, ['crictl', '-c', join(directory, 'crictl.yaml'), 'pods', '-q', '--id', pod]);
  expect(byFile).toMatchObject({ code: 0, stdout: `${pod}\n` });
  const env = { ...process.env, CONTAINER_RUNTIME_ENDPOINT: socket };
  const byEnvironment = await exec(NODELET, ['crictl', '-t', '60s', 'pods', '-q', '--id', pod], { env });
  expect(byEnvironment).toMatchObject({ code: 0, stdout: `${pod}\n` });
  const explained = await exec(NODELET, ['crictl', '--explain', '-r', socket, '-t', '60s', 'pods', '-q', '--id', pod]);
  expect(explained).toMatchObject({ code: 0, stdout: `${pod}\n` });
  expect(explained.stderr).toMatch(/^explain: ListPodSandbox: PLEG: relist/);
});

test('what the runtime refuses has gRPC’s code and words, and exit code 1', async () => {
  for (const args of [
    ['inspect', 'nosuch'],
    ['inspectp', 'nosuch'],
    ['logs', 'nosuch'],
    ['exec', 'nosuch', 'true'],
  ]) {
    const refused = await tryCrictl(args);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^FATA\[\d+\] .*rpc error: code = NotFound desc = /);
  }
  const noRuntime = await exec(NODELET, ['crictl', '-t', '60s', '-r', `unix://${directory}/no.sock`, 'ps']);
  expect(noRuntime).toMatchObject({ code: 1 });
  expect(noRuntime.stderr).toMatch(
    /code = Unavailable desc = connection error: .*dial unix \S+no.sock: connect: no such file/,
  );
});

test('stop, rm, stopp and rmp take it away, logs and all', async () => {
  const running = await tryCrictl(['rm', container]);
  expect(running).toMatchObject({ code: 1 });
  expect(running.stderr).toContain('is running, please stop it first');
  const followed = start(NODELET, words(['logs', '-f', container]));
  await says(followed, 'to-stdout');
  expect((await crictl('stop', '--timeout', '0', container)).trim()).toBe(container);
  // A log that is followed ends with its container.
  expect(await followed.ended).toBe(0);
  expect(column(await crictl('ps', '-a', '--pod', pod), 'STATE')).toEqual(['Exited']);
  expect(JSON.parse(await crictl('inspect', container)).status.exitCode).toBe(137);
  expect((await crictl('rm', container)).trim()).toBe(container);
  await expect(readFile(join(directory, 'shell', '0.log'))).rejects.toThrow('ENOENT');
  expect(await crictl('stopp', pod)).toBe(`Stopped sandbox ${pod}\n`);
  expect(await crictl('rmp', pod)).toBe(`Removed sandbox ${pod}\n`);
  expect(await crictl('pods', '-q', '--id', pod)).toBe('');
});

test('run makes pod and container at once, and rmp -f takes a running one', async () => {
  const files = [join(directory, 'container.json'), join(directory, 'pod.yaml')];
  const id = (await crictl('run', '--no-pull', ...files)).trim();
  const made = (await crictl('ps', '-o', 'json', '--id', id).then(JSON.parse)).containers[0].podSandboxId;
  expect(await crictl('rmp', '-f', made)).toBe(`Stopped sandbox ${made}\nRemoved sandbox ${made}\n`);
});
