import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { closeServer, listen, respondMetrics, splitHostPort } from '../../../lib/http-listen.ts';

test.each([
  ['127.0.0.1:10249', '127.0.0.1', 10_249],
  ['[::1]:10256', '::1', 10_256],
  [':10256', '0.0.0.0', 10_256],
])('the address %s', (address, host, port) => {
  expect(splitHostPort(address)).toEqual({ host, port });
});

test('a page of metrics, one that cannot be made, and an address that is taken', async () => {
  const pages = [async () => 'up 1\n', async () => Promise.reject(new Error('no registry'))];
  const server = await listen(
    (_request, response) => respondMetrics(response, pages.shift()?.() ?? Promise.resolve('')),
    '127.0.0.1:0',
  );
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const page = await fetch(`http://${address}/metrics`);
    expect([page.status, page.headers.get('content-type'), await page.text()]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
      'up 1\n',
    ]);
    const failed = await fetch(`http://${address}/metrics`);
    expect([failed.status, await failed.text()]).toEqual([500, 'no registry']);
    await expect(listen(() => undefined, address)).rejects.toThrow('EADDRINUSE');
  } finally {
    closeServer(server);
  }
});
