import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CsiError, connectCsi, csiTarget, isCsiError } from '../../../csi/client.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { FakeCsiDriver } from '../../support/scripted-csi-driver.ts';

let directory = '';
let driver: FakeCsiDriver;
let socket = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-client-'));
  socket = join(directory, 'csi.sock');
  driver = new FakeCsiDriver();
  await driver.listen(socket);
});
afterEach(async () => {
  driver.kill();
  await rm(directory, { recursive: true, force: true });
});

test.each([
  ['unix:///run/csi.sock', 'unix:/run/csi.sock'],
  ['unix:/run/csi.sock', 'unix:/run/csi.sock'],
  ['/run/csi.sock', 'unix:/run/csi.sock'],
])('the endpoint %s is %s to gRPC', (endpoint, target) => {
  expect(csiTarget(endpoint)).toBe(target);
});

test.each(['tcp://1.2.3.4:5', 'csi.sock', 'unix://csi.sock', ''])('the endpoint "%s" is refused', (endpoint) => {
  expect(() => csiTarget(endpoint)).toThrow(RangeError);
});

describe('a call', () => {
  test('that fails keeps the driver’s code and words', async () => {
    const client = connectCsi(socket);
    driver.next('NodeStageVolume', { code: 'FAILED_PRECONDITION', message: 'the disk is upside down' });
    const error: unknown = await client.node.NodeStageVolume({ volume_id: 'v' }).catch((reason: unknown) => reason);
    client.close();
    expect(error).toBeInstanceOf(CsiError);
    expect(error).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: 'the disk is upside down',
      call: 'NodeStageVolume',
    });
    expect(isCsiError(error, 'FAILED_PRECONDITION')).toBe(true);
    expect(isCsiError(error, 'INTERNAL')).toBe(false);
  });

  test('ends at its deadline when the driver says nothing', async () => {
    const client = connectCsi(socket);
    driver.next('NodePublishVolume', 'hang');
    const call = client.node.NodePublishVolume({ volume_id: 'v' }, { deadlineMs: 50 });
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    client.close();
  });

  test('of a driver that is not there is UNAVAILABLE', async () => {
    const client = connectCsi(join(directory, 'nobody.sock'));
    await expect(client.identity.Probe({})).rejects.toMatchObject({ code: 'UNAVAILABLE', call: 'Probe' });
    client.close();
  });

  test('ends when its signal aborts', async () => {
    const client = connectCsi(socket);
    driver.next('NodeStageVolume', 'hang');
    const over = new AbortController();
    const call = client.node.NodeStageVolume({ volume_id: 'v' }, { signal: over.signal });
    setImmediate(() => over.abort());
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    client.close();
  });

  test('is one span that names the volume and contains no secret', async () => {
    const spans: Span[] = [];
    const tracer = new Tracer();
    tracer.subscribe((span) => spans.push(span));
    const client = connectCsi(socket, { tracer });
    await client.node.NodeStageVolume({
      volume_id: 'v1',
      staging_target_path: '/staging',
      secrets: { password: 'hush-1' },
      publish_context: { key: 'hush-2' },
      volume_context: { token: 'hush-3' },
    });
    client.close();
    expect(spans).toMatchObject([
      { kind: 'csi', name: 'NodeStageVolume', attributes: { volume_id: 'v1', staging_target_path: '/staging' } },
    ]);
    expect(JSON.stringify(spans)).not.toContain('hush');
  });
});
