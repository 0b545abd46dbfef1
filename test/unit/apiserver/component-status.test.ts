// ComponentStatuses: what other components say of their health, asked at each request.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { componentObjects } from '../../../apiserver/component-status.ts';
import { componentstatuses } from '../../../apiserver/kinds/replication.ts';
import { systemClock } from '../../../lib/clock.ts';

it('are what each component answers now', async () => {
  let healthy = true;
  const server = createServer((request, response) => {
    response.writeHead(healthy && request.url === '/healthz' ? 200 : 500).end(healthy ? 'ok' : 'no leader');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/healthz`;
  const objects = componentObjects([{ name: 'scheduler', url }], systemClock);
  const rows = async (): Promise<unknown> => {
    await objects.ready();
    return objects.list(undefined).map((object) => componentstatuses.strategy.table?.row(object, systemClock.now()));
  };
  expect(await rows()).toEqual([['scheduler', 'Healthy', 'ok', '']]);
  expect(objects.get('', 'scheduler')).toEqual({
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name: 'scheduler' },
    conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
  });
  expect(() => objects.get('', 'etcd-0')).toThrow('componentstatuses "etcd-0" not found');
  healthy = false;
  expect(await rows()).toEqual([['scheduler', 'Unhealthy', 'no leader', '']]);
  await new Promise((resolve) => server.close(resolve));
  const refused = `Get "${url}": dial tcp 127.0.0.1:${port}: connect: connection refused`;
  expect(await rows()).toEqual([['scheduler', 'Unhealthy', refused, '']]);
});
