// Talking to what runs: kubectl logs, exec, attach and port-forward against a real container, by every kubectl given: everything by the
// oldest and the newest, and what goes over the wire in another way by those between.

import { spawn } from 'node:child_process';
import { createConnection } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod } from '../../../client/types.ts';
import { type ExecOptions, type ExecResult, exec } from '../../../lib/exec.ts';
import { kubectls, onFullList } from '../support/kubectls.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { untilTouched } from '../support/until-touched.ts';
import { apply, eventually, FOREVER, httpGet, isReady, podWhen, prints, ready, shellPod } from './harness.ts';

// The runtime copies the two streams side by side: their lines have an order where the first are in the log before the last is written.
const LINES = `for i in 1 2 3 4 5; do echo line $i; done; ${untilTouched('/written')}; echo trouble >&2; `;
const ONCE = `if [ -e /work/again ]; then echo second life; ${FOREVER}; else touch /work/again; echo first life; exit 3; fi`;

let lab: TestLab;

beforeAll(async () => {
  lab = await shareLab();
  const scratch = { volumes: [{ name: 'work', emptyDir: {} }] };
  await apply(
    lab,
    shellPod('talker', LINES + FOREVER),
    shellPod('followed', FOREVER),
    shellPod('twice', ONCE, scratch, { volumeMounts: [{ name: 'work', mountPath: '/work' }] }),
    shellPod('done', 'echo over', { restartPolicy: 'Never' }),
    shellPod('reader', 'while read line; do echo "heard $line"; done', { restartPolicy: 'Never' }, { stdin: true }),
    shellPod('web', 'exec httpd -f -p 8080 -h /etc'),
  );
  await Promise.all(['talker', 'followed', 'reader', 'web'].map((name) => ready(lab, name)));
  await prints(lab, /line 5/, 'logs', 'talker');
  await lab.kubectl('exec', 'talker', '--', 'touch', '/written');
  await prints(lab, /trouble/, 'logs', 'talker');
  await eventually('the second life of twice', async () =>
    (await lab.kubectl('logs', 'twice')).includes('second life') ? true : undefined,
  );
  await podWhen(lab, 'done', 'Succeeded', (pod) => pod.status?.phase === 'Succeeded');
  await podWhen(lab, 'twice', 'running again', (pod) => {
    const status = pod.status?.containerStatuses?.[0];
    return status?.restartCount === 1 && status.ready;
  });
});
afterAll(() => lab?.stop());

describe.each(await kubectls())('kubectl $version', ({ command: binary, full }) => {
  const fully = onFullList({ full });
  const run = (
    args: readonly string[],
    options: ExecOptions = {},
    env: Record<string, string> = {},
  ): Promise<ExecResult> =>
    exec(binary, ['--kubeconfig', lab.kubeconfig, ...args], {
      timeoutMs: 120_000,
      ...options,
      env: { ...process.env, ...env },
    });
  const output = async (...args: string[]): Promise<string> => {
    const result = await run(args);
    expect(result, args.join(' ')).toMatchObject({ code: 0 });
    return result.stdout;
  };

  test('logs shows standard output and error of the container, in order', async () => {
    expect(await output('logs', 'talker')).toBe('line 1\nline 2\nline 3\nline 4\nline 5\ntrouble\n');
  });

  fully('logs --tail, --since and --timestamps show what they say', async () => {
    expect(await output('logs', 'talker', '--tail=2')).toBe('line 5\ntrouble\n');
    expect(await output('logs', 'talker', '--since=1h', '--tail=1')).toBe('trouble\n');
    expect(await output('logs', 'talker', '--since-time=2200-01-01T00:00:00Z')).toBe('');
    expect(await output('logs', 'talker', '--tail=1', '--timestamps')).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]+\S+ trouble\n$/,
    );
  });

  fully('logs -p shows the life before, logs the one that runs', async () => {
    expect(await output('logs', 'twice', '-p')).toBe('first life\n');
    expect(await output('logs', 'twice')).toBe('second life\n');
    const none = await run(['logs', 'talker', '-p']);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('previous terminated container "main" in pod "talker" not found');
  });

  fully('logs of a pod that has ended are still there', async () => {
    expect(await output('logs', 'done')).toBe('over\n');
    // Following a container that has ended ends by itself.
    expect(await output('logs', '-f', 'done')).toBe('over\n');
  });

  fully('logs -f shows a line as soon as it is written', async () => {
    const child = spawn(binary, ['--kubeconfig', lab.kubeconfig, 'logs', '-f', '--tail=0', 'followed']);
    let seen = '';
    child.stdout.on('data', (chunk: Buffer) => {
      seen += String(chunk);
    });
    const mark = `mark-${process.hrtime.bigint()}`;
    await eventually('the line in the log', async () => {
      await run(['exec', 'followed', '--', 'sh', '-c', `echo ${mark} > /proc/1/fd/1`]);
      return seen.includes(mark) ? true : undefined;
    });
    child.kill();
    await new Promise((resolve) => child.once('close', resolve));
    expect(seen).toContain(`${mark}\n`);
  });

  test('exec returns output, error output and exit code of the command', async () => {
    const result = await run(['exec', 'talker', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(result.code).toBe(7);
    expect(result.stdout).toBe('out\n');
    expect(result.stderr).toContain('err\n');
    expect(result.stderr).toContain('command terminated with exit code 7');
  });

  test('exec goes over SPDY as well when WebSockets are switched off', async () => {
    const result = await run(
      ['exec', 'talker', '--', 'echo', 'spdy'],
      {},
      { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' },
    );
    expect(result).toMatchObject({ code: 0, stdout: 'spdy\n' });
  });

  test('exec -i hands standard input to the command, byte for byte, and its end', async () => {
    const big = `${'0123456789abcde\n'.repeat(16_384)}`;
    const result = await run(['exec', '-i', '-v=4', 'talker', '--', 'wc', '-c'], { stdin: big });
    expect(result).toMatchObject({ code: 0, stdout: `${big.length}\n` });
    expect(result.stderr).not.toMatch(/fallback/i);
  });

  fully('exec -it allocates a terminal', async () => {
    const command = `${binary} --kubeconfig ${lab.kubeconfig} exec -it talker -- sh -c 'tty; stty size; exit 4'`;
    const result = await exec(
      'script',
      ['--quiet', '--return', '--command', `stty rows 33 cols 101; ${command}`, '/dev/null'],
      {
        timeoutMs: 120_000,
      },
    );
    expect(result.stdout).toMatch(/\/dev\/pts\/\d+/);
    expect(result.code).toBe(4);
  });

  fully('exec of a program that is not there fails with the runtime’s words', async () => {
    const result = await run(['exec', 'talker', '--', '/no/such/program']);
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain('/no/such/program');
    expect(result.stderr).toMatch(/no such file or directory|not found/);
  });

  fully('exec and logs of a container that the pod does not have name it', async () => {
    for (const args of [
      ['exec', 'talker', '-c', 'other', '--', 'true'],
      ['logs', 'talker', '-c', 'other'],
    ]) {
      const result = await run(args);
      expect(result.code, args.join(' ')).toBe(1);
      expect(result.stderr).toMatch(/container (name )?"?other"? (not found|is not valid)/);
    }
  });

  fully('exec in a pod that has ended is refused with the reason', async () => {
    const result = await run(['exec', 'done', '--', 'true']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('cannot exec into a container in a completed pod; current phase is Succeeded');
  });

  test('attach hands lines to the container and shows what it answers', async () => {
    const child = spawn(binary, ['--kubeconfig', lab.kubeconfig, 'attach', '-i', 'reader']);
    let seen = '';
    child.stdout.on('data', (chunk: Buffer) => {
      seen += String(chunk);
    });
    const mark = `mark-${process.hrtime.bigint()}`;
    await eventually('the answer', () => {
      child.stdin.write(`${mark}\n`);
      return seen.includes(`heard ${mark}`) ? true : undefined;
    });
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
  });

  test('port-forward carries connections to a port of the pod', async () => {
    const child = spawn(binary, ['--kubeconfig', lab.kubeconfig, 'port-forward', '-v=4', 'pod/web', ':8080']);
    let messages = '';
    child.stdout.on('data', (chunk: Buffer) => {
      messages += String(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      messages += String(chunk);
    });
    try {
      const port = await eventually('the forwarded port', () => /127\.0\.0\.1:(\d+) ->/.exec(messages)?.[1]);
      for (let i = 0; i < 3; i++) {
        const answer = await httpGet(`http://127.0.0.1:${port}/hostname`);
        expect(answer, messages).toEqual({ status: 200, body: 'web\n' });
      }
      expect(messages).not.toMatch(/fallback/i);
    } finally {
      child.kill();
      await new Promise((resolve) => child.once('close', resolve));
    }
  });
});

test('the kubelet port refuses unauthenticated requests', async () => {
  const port = lab.lab.state.kubeletPort;
  const { stdout } = await exec('curl', [
    '-sk',
    '-o',
    '/dev/null',
    '-w',
    '%{http_code}',
    `https://127.0.0.1:${port}/pods`,
  ]);
  expect(stdout).toBe('401');
  const plain = await new Promise<string>((resolve) => {
    let text = '';
    const socket = createConnection(port, '127.0.0.1', () => socket.write('GET /pods HTTP/1.0\r\n\r\n'));
    socket.on('data', (chunk) => {
      text += String(chunk);
    });
    socket.on('error', () => resolve(text));
    socket.on('close', () => resolve(text));
  });
  expect(plain).not.toContain('200');
});

/** A set of two pods, each of which serves its own name. */
function replicated(apiVersion: string, kind: string): object {
  const labels = { serves: kind.toLowerCase() };
  const script = 'mkdir /tmp/w; cd /tmp/w; hostname > index.html; exec httpd -f -p 8080';
  const { spec } = shellPod('', script) as { spec: object };
  const template = { metadata: { labels }, spec };
  const selector = kind === 'ReplicaSet' ? { matchLabels: labels } : labels;
  return { apiVersion, kind, metadata: { name: labels.serves }, spec: { replicas: 2, selector, template } };
}

test('each pod of a replica set and of a replication controller answers', async () => {
  const kinds = ['ReplicaSet', 'ReplicationController'];
  await apply(lab, replicated('apps/v1', 'ReplicaSet'), replicated('v1', 'ReplicationController'));
  for (const kind of kinds) {
    const labelSelector = `serves=${kind.toLowerCase()}`;
    const path = resourcePath('v1', 'pods', { namespace: lab.namespace });
    const pods = await eventually(`two pods of a ${kind}`, async () => {
      const { items } = await lab.client.list<Pod>(path, { labelSelector });
      return items.length === 2 && items.every(isReady) ? items : undefined;
    });
    for (const { metadata, status } of pods) {
      expect(metadata.ownerReferences?.[0]?.kind).toBe(kind);
      expect((await httpGet(`http://${status?.podIP}:8080/`)).body.trim()).toBe(metadata.name);
    }
  }
  await lab.kubectl('delete', 'replicaset/replicaset', 'replicationcontroller/replicationcontroller');
});
