import { describe, expect, test } from 'vitest';
import { nanosToMs, runtimeImage, runtimeStatus, sandboxDetail } from '../../../../agent/runtime/convert.ts';
import { grpcTarget, toRuntimeError } from '../../../../agent/runtime/grpc-cri-client.ts';
import { GrpcError } from '../../../../proto/unary.ts';

test.each([
  ['0', 0],
  ['', 0],
  ['999999', 0],
  ['1700000000249999999', 1_700_000_000_249],
  ['1700000000250000000', 1_700_000_000_250],
  ['-62135596800000000000', 0],
])('%s ns is %i ms', (nanos, ms) => {
  expect(nanosToMs(nanos)).toBe(ms);
});

const NET = { ip: '10.0.0.1', additional_ips: [{ ip: 'fd00::1' }] };
const status = (network: typeof NET | null, mode: 'NODE' | 'POD') => ({
  id: 's',
  metadata: null,
  state: 'SANDBOX_READY' as const,
  created_at: '0',
  network,
  linux: {
    namespaces: { options: { network: mode, pid: 'POD', ipc: 'POD', target_id: '', userns_options: null } as const },
  },
  labels: {},
  annotations: {},
  runtime_handler: '',
});

test('a sandbox has its own addresses, primary first; one on the host’s network has none', () => {
  expect(sandboxDetail(status(NET, 'POD'))).toEqual({ ips: ['10.0.0.1', 'fd00::1'], hostNetwork: false });
  expect(sandboxDetail(status(null, 'POD'))).toEqual({ ips: [], hostNetwork: false });
  expect(sandboxDetail(status({ ...NET, ip: '192.0.2.9' }, 'NODE'))).toEqual({ ips: [], hostNetwork: true });
});

test('an image’s user is a number or a name', () => {
  const image = {
    id: 'i',
    repo_tags: ['t'],
    repo_digests: [],
    size: '42',
    uid: null,
    username: '',
    spec: null,
    pinned: true,
  };
  expect(runtimeImage(image)).toEqual({ id: 'i', repoTags: ['t'], repoDigests: [], sizeBytes: 42, pinned: true });
  expect(runtimeImage({ ...image, uid: { value: '0' } })).toMatchObject({ uid: 0 });
  expect(runtimeImage({ ...image, username: 'web' })).toMatchObject({ username: 'web' });
});

test('a condition that the runtime does not report is not met, and says so', () => {
  const conditions = [{ type: 'RuntimeReady', status: true, reason: '', message: '' }];
  const read = runtimeStatus({ status: { conditions }, info: {}, runtime_handlers: [], features: null });
  expect(read.runtimeReady.ok).toBe(true);
  expect(read.networkReady).toMatchObject({ ok: false, reason: 'NetworkReadyConditionMissing' });
});

describe('errors', () => {
  test('keep the runtime’s own words, without gRPC’s frame, and the code beside them', () => {
    const error = toRuntimeError(new GrpcError('PullImage', 'NOT_FOUND', 'failed to pull "x": not found'));
    expect(error).toMatchObject({
      name: 'RuntimeError',
      call: 'PullImage',
      code: 'NOT_FOUND',
      message: 'failed to pull "x": not found',
    });
    const other = new Error('x');
    expect(toRuntimeError(other)).toBe(other);
  });
});

test('an endpoint is a unix socket', () => {
  expect(grpcTarget('unix:///run/c.sock')).toBe('unix:/run/c.sock');
  expect(grpcTarget('/run/c.sock')).toBe('unix:/run/c.sock');
  expect(() => grpcTarget('tcp://1.2.3.4:5')).toThrow(/"tcp:\/\/1\.2\.3\.4:5" is not unix/);
});
