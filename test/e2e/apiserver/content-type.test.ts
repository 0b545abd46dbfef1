// The types of answers, letter by letter as kube-apiserver writes them: the kubectls of early 1.27 compare the type of
// aggregated discovery as a string.

import { get } from 'node:https';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../kubectl/support.ts';

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(() => test?.stop());

function typeOf(path: string, accept: string): Promise<string | undefined> {
  const { ca, clients } = test.server.pki;
  const { cert, key } = clients.admin;
  return new Promise((resolve, reject) => {
    get(`${test.server.url}${path}`, { ca: ca.cert, cert, key, agent: false, headers: { accept } }, (response) => {
      response.resume();
      resolve(response.headers['content-type']);
    }).on('error', reject);
  });
}

const aggregated = (version: string): string =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;

it.each([
  ['/api', aggregated('v2beta1'), aggregated('v2beta1')],
  ['/apis', `${aggregated('v2')},${aggregated('v2beta1')},application/json`, aggregated('v2')],
  ['/apis', 'application/json', 'application/json'],
  ['/api/v1/namespaces', 'application/json', 'application/json'],
  ['/api/v1/namespaces/none', 'application/json', 'application/json'],
  ['/version', '*/*', 'application/json'],
])('%s for %s is %s', async (path, accept, type) => {
  expect(await typeOf(path, accept)).toBe(type);
});
