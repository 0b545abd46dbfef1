import { createServer, type RequestListener } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createHookRunner, type HookHandler } from '../../../../agent/pods/hooks.ts';
import type { ContainerId } from '../../../../agent/ports/runtime.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { FakeRecorder, makePod } from '../../../sim/fakes.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

const recorder = new FakeRecorder();
const answer = { stdout: Buffer.from('some'), stderr: Buffer.from('bad'), exitCode: 0, timedOut: false };

function run(handler: HookHandler, exec: Partial<typeof answer> = {}, timeoutMs = Number.POSITIVE_INFINITY) {
  const runtime = { execSync: async () => ({ ...answer, ...exec }) };
  const hook = createHookRunner({ runtime, recorder, clock: systemClock, tracer: new Tracer() });
  const container = { name: 'web', ports: [{ name: 'http', containerPort: 8080 }] };
  const target = { pod: makePod('web-pod'), container, id: 'c1' as ContainerId, podIP: '127.0.0.1' };
  return hook('preStop', handler, target, timeoutMs, new AbortController().signal);
}

describe('an exec hook', () => {
  it('succeeds with exit code 0', async () => {
    await expect(run({ exec: { command: ['true'] } })).resolves.toBeUndefined();
  });
  it('fails with any other, in the words of the kubelet', async () => {
    await expect(run({ exec: { command: ['sh', '-c', 'exit 3'] } }, { exitCode: 3 })).rejects.toThrow(
      'Exec lifecycle hook ([sh -c exit 3]) for Container "web" in Pod "web-pod_demo(uid-web-pod)" failed - ' +
        'error: command \'sh -c exit 3\' exited with 3: bad, message: "somebad"',
    );
  });
});

describe('an exec hook that takes too long', () => {
  it('is waited for no longer, and not limited by the runtime: it runs on until its container ends', async () => {
    const limits: number[] = [];
    const ended = Promise.withResolvers<typeof answer>();
    const execSync = (_id: ContainerId, _command: readonly string[], timeoutMs: number) => {
      limits.push(timeoutMs);
      return ended.promise;
    };
    const hook = createHookRunner({ runtime: { execSync }, recorder, clock: systemClock, tracer: new Tracer() });
    const target = { pod: makePod('web-pod'), container: { name: 'web' }, id: 'c1' as ContainerId, podIP: undefined };
    const handler = { exec: { command: ['sleep', '60'] } };
    await expect(hook('preStop', handler, target, 50, new AbortController().signal)).rejects.toThrow('within 50 ms');
    expect(limits).toEqual([0]);
    // Its failure, once the container is gone, has no handler any more, and needs none.
    ended.reject(new Error('context canceled'));
    await new Promise(setImmediate);
  });
});

describe('an httpGet hook', () => {
  it('names itself kube-lifecycle and succeeds with any answer, whatever its status', async () => {
    let agent: string | undefined;
    const port = await serve((request, response) => {
      agent = request.headers['user-agent'];
      response.writeHead(500).end('no');
    });
    await expect(run({ httpGet: { port } })).resolves.toBeUndefined();
    expect(agent).toBe('kube-lifecycle/1.34');
  });
  it('falls back to HTTP when HTTPS is answered in plain HTTP, without Authorization, and says so', async () => {
    const seen: (string | undefined)[] = [];
    const port = await serve((request, response) => {
      seen.push(request.headers.authorization);
      response.end();
    });
    const httpHeaders = [{ name: 'Authorization', value: 'Bearer x' }];
    await run({ httpGet: { port, scheme: 'HTTPS', httpHeaders } });
    expect(seen).toEqual([undefined]);
    expect(recorder.of('LifecycleHTTPFallback')).toEqual([
      `request to HTTPS lifecycle hook 127.0.0.1:${port} got HTTP response, retry with HTTP succeeded`,
    ]);
  });
  it('fails when its port has no such name', async () => {
    await expect(run({ httpGet: { port: 'admin', path: '/bye' } })).rejects.toThrow(
      'HTTP lifecycle hook (/bye) for Container "web" in Pod "web-pod_demo(uid-web-pod)" failed - ' +
        'error: strconv.Atoi: parsing "admin": invalid syntax',
    );
  });
  it('that never ends is given up when its time is over', async () => {
    const port = await serve(() => undefined);
    await expect(run({ httpGet: { port } }, {}, 50)).rejects.toThrow('preStop hook did not end within 50 ms');
  });
});

describe('any other hook', () => {
  it('of tcpSocket is refused: no kubelet runs it', async () => {
    await expect(run({ tcpSocket: { port: 80 } })).rejects.toThrow('Cannot run handler: invalid handler');
  });
  it('of sleep waits its time', async () => {
    await expect(run({ sleep: { seconds: 0 } })).resolves.toBeUndefined();
  });
  it('of sleep ends early when its time is over', async () => {
    await expect(run({ sleep: { seconds: 60 } }, {}, 50)).rejects.toThrow('preStop hook did not end within 50 ms');
  });
});
