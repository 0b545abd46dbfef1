import { describe, expect, it } from 'vitest';
import { labelsOf } from '../../../../apiserver/http/measure.ts';
import { parseRequest } from '../../../../apiserver/http/request.ts';
import { Metrics, type RequestLabels } from '../../../../apiserver/metrics.ts';

const served = (group: string, version: string, plural: string): boolean =>
  ['/v1/pods', 'apps/v1/deployments'].includes(`${group}/${version}/${plural}`);
const NONE: RequestLabels = {
  verb: 'GET',
  group: '',
  version: '',
  resource: '',
  subresource: '',
  scope: '',
  dry_run: '',
};
const POD: RequestLabels = { ...NONE, version: 'v1', resource: 'pods' };

const CASES: readonly [string, string, RequestLabels][] = [
  ['GET', '/api/v1/pods', { ...POD, verb: 'LIST', scope: 'cluster' }],
  ['GET', '/api/v1/namespaces/n/pods?watch=true', { ...POD, verb: 'WATCH', scope: 'namespace' }],
  ['GET', '/api/v1/namespaces/n/pods/p', { ...POD, scope: 'resource' }],
  ['GET', '/api/v1/namespaces/n/pods/p/log', { ...POD, subresource: 'log', scope: 'resource' }],
  ['POST', '/api/v1/namespaces/n/pods?dryRun=All', { ...POD, verb: 'POST', scope: 'namespace', dry_run: 'All' }],
  [
    'PUT',
    '/apis/apps/v1/namespaces/n/deployments/d',
    { ...POD, verb: 'PUT', group: 'apps', resource: 'deployments', scope: 'resource' },
  ],
  ['DELETE', '/api/v1/namespaces/n/pods', { ...POD, verb: 'DELETECOLLECTION', scope: 'namespace' }],
  ['GET', '/livez/etcd', { ...NONE, subresource: 'livez' }],
  ['GET', '/version', { ...NONE, subresource: '/version' }],
  // What a client makes up.
  ['GET', '/apis/made-up/v1/things', { ...NONE, verb: 'LIST' }],
  ['GET', '/api/v1/namespaces/n/pods/p/made-up', { ...POD, scope: 'resource' }],
  ['GET', '/made-up', NONE],
];

describe('the labels of a request', () => {
  it.each(CASES)('%s %s', (method, url, labels) => {
    expect(labelsOf(parseRequest(method, url), served)).toEqual(labels);
  });
});

it('a request counts as being served until it is over', async () => {
  const metrics = new Metrics();
  const over = metrics.begin({ ...POD, verb: 'POST', scope: 'namespace' }, false);
  const watch = metrics.begin({ ...POD, verb: 'WATCH', scope: 'cluster' }, true);
  const before = (await metrics.show()).body;
  expect(before).toContain('apiserver_current_inflight_requests{request_kind="mutating"} 1\n');
  expect(before).toContain('apiserver_current_inflight_requests{request_kind="readOnly"} 0\n');
  expect(before).toMatch(/^apiserver_longrunning_requests\{verb="WATCH",.*\} 1$/m);
  over(201, 0.03);
  watch(200, 7);
  const { body } = await metrics.show();
  expect(body).toContain('apiserver_current_inflight_requests{request_kind="mutating"} 0\n');
  expect(body).toMatch(/^apiserver_request_total\{verb="POST",.*code="201"\} 1$/m);
  expect(body).toMatch(/^apiserver_request_duration_seconds_bucket\{le="0.025",verb="POST",.*\} 0$/m);
  expect(body).toMatch(/^apiserver_request_duration_seconds_bucket\{le="0.05",verb="POST",.*\} 1$/m);
  expect(body).toMatch(/^apiserver_longrunning_requests\{verb="WATCH",.*\} 0$/m);
});
