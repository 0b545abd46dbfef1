import { describe, expect, it } from 'vitest';
import { labelsOf } from '../../../../apiserver/http/measure.ts';
import { parseRequest } from '../../../../apiserver/http/request.ts';
import { Metrics, type RequestLabels } from '../../../../apiserver/metrics.ts';
import { TestApiServer } from '../../../support/api-server.ts';

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
  over({ code: 201, seconds: 0.03 });
  watch({ code: 200, seconds: 7 });
  const { body } = await metrics.show();
  expect(body).toContain('apiserver_current_inflight_requests{request_kind="mutating"} 0\n');
  expect(body).toMatch(/^apiserver_request_total\{verb="POST",.*code="201"\} 1$/m);
  expect(body).toMatch(/^apiserver_request_duration_seconds_bucket\{le="0.025",verb="POST",.*\} 0$/m);
  expect(body).toMatch(/^apiserver_request_duration_seconds_bucket\{le="0.05",verb="POST",.*\} 1$/m);
  expect(body).toMatch(/^apiserver_longrunning_requests\{verb="WATCH",.*\} 0$/m);
});

describe('what dashboards and alerts read', () => {
  const shown = async (metrics: Metrics): Promise<string> => (await metrics.show()).body;

  it('the time in a queue is not the server’s, sizes are of reads, and what is ended for protection is counted', async () => {
    const metrics = new Metrics();
    const get = { ...POD, verb: 'GET', scope: 'resource' } as const;
    metrics.begin(get, false)({ code: 200, seconds: 1.03, waited: 1, bytes: 1500 });
    metrics.begin({ ...get, verb: 'PUT' }, false)({ code: 504, seconds: 60, bytes: 200, terminated: true });
    const body = await shown(metrics);
    expect(body).toMatch(/^apiserver_request_sli_duration_seconds_bucket\{le="0.05",verb="GET",.*\} 1$/m);
    expect(body).toMatch(/^apiserver_request_duration_seconds_bucket\{le="1",verb="GET",.*\} 0$/m);
    expect(body).toMatch(/^apiserver_response_sizes_bucket\{le="1000",verb="GET",.*\} 0$/m);
    expect(body).toMatch(/^apiserver_response_sizes_bucket\{le="10000",verb="GET",.*\} 1$/m);
    expect(body).not.toMatch(/^apiserver_response_sizes_count\{verb="PUT"/m);
    expect(body.match(/^apiserver_request_terminations_total\{.*$/gm)).toEqual([
      expect.stringMatching(/verb="PUT",.*code="504"\} 1$/),
    ]);
  });

  it('the process and the version are there', async () => {
    const body = await shown(new Metrics());
    expect(body).toMatch(/^# TYPE process_cpu_seconds_total counter$/m);
    for (const name of ['resident_memory_bytes', 'virtual_memory_bytes', 'open_fds', 'start_time_seconds']) {
      expect(Number(new RegExp(`^process_${name} (\\S+)$`, 'm').exec(body)?.[1])).toBeGreaterThan(0);
    }
    expect(body).toMatch(/^kubernetes_build_info\{.*git_version="v1\.34\.\d+\+nodelet".*\} 1$/m);
  });

  it('a server shows its requests, objects, certificates, writes and services', async () => {
    const stand = await TestApiServer.start();
    try {
      await stand.admit('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } });
      const { text: denied } = await stand.call({ path: '/api/v1/pods', as: await stand.certificate('nobody') });
      expect(denied).toContain('forbidden');
      expect((await stand.call({ path: '/api/v1/pods', as: { token: 'none' } })).code).toBe(401);
      const endpoints = await stand.call({ path: '/api/v1/endpoints', as: stand.admin });
      expect(endpoints.headers['warning']).toBe(
        '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"',
      );
      const { text } = await stand.call({ path: '/metrics', as: stand.admin });
      const value = (series: string): number => Number(text.split(`\n${series} `)[1]?.split('\n')[0]);
      expect(value('apiserver_resource_objects{group="",resource="namespaces"}')).toBe(4);
      expect(value('apiserver_storage_objects{resource="apiservices.apiregistration.k8s.io"}')).toBeGreaterThan(20);
      expect(value('apiserver_storage_size_bytes{storage_cluster_id="file"}')).toBeGreaterThan(4096);
      expect(value('aggregator_unavailable_apiservice{name="v1.apps"}')).toBe(0);
      expect(value('authentication_attempts{result="failure"}')).toBe(1);
      expect(value('authorization_attempts_total{result="denied"}')).toBe(1);
      expect(value('apiserver_client_certificate_expiration_seconds_count')).toBeGreaterThanOrEqual(3);
      expect(
        value('etcd_request_duration_seconds_count{operation="create",group="",resource="configmaps"}'),
      ).toBeGreaterThanOrEqual(1);
      expect(text).toMatch(/^apiserver_requested_deprecated_apis\{group="",version="v1",resource="endpoints",.*\} 1$/m);
    } finally {
      await stand.stop();
    }
  });

  it('admission shows how long each plugin takes, watches and writes how large they are', async () => {
    const stand = await TestApiServer.start();
    try {
      const path = '/api/v1/namespaces/default';
      const watch = await stand.watch(`${path}/configmaps?watch=true`, stand.admin);
      await stand.admit('POST', `${path}/configmaps`, { metadata: { name: 'a' }, data: { a: 'x'.repeat(60_000) } });
      await stand.admit('POST', `${path}/configmaps`, { metadata: { name: 'b' } });
      await stand.admit('POST', `${path}/serviceaccounts`, { metadata: { name: 'default' } });
      const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } };
      const enforce = { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } };
      await stand.admit('PATCH', '/api/v1/namespaces/default', enforce, {
        'content-type': 'application/merge-patch+json',
      });
      expect((await stand.call({ method: 'POST', path: `${path}/pods`, as: stand.admin, body: pod })).code).toBe(403);
      const page = async () => (await stand.call({ path: '/metrics', as: stand.admin })).text;
      const text = await page();
      const value = (series: string): number => Number(text.split(`\n${series} `)[1]?.split('\n')[0]);
      const plugin = 'apiserver_admission_controller_admission_duration_seconds';
      const security = 'name="PodSecurity",type="validate",operation="CREATE"';
      expect(value(`${plugin}_count{${security},rejected="true"}`)).toBe(1);
      expect(value(`${plugin}_bucket{le="+Inf",${security},rejected="true"}`)).toBe(1);
      expect(value(`${plugin}_count{name="ServiceAccount",type="admit",operation="CREATE",rejected="false"}`)).toBe(1);
      expect(
        value(
          'apiserver_admission_step_admission_duration_seconds_count{type="validate",operation="CREATE",rejected="true"}',
        ),
      ).toBe(1);
      const body = 'apiserver_request_body_size_bytes';
      const created = 'group="",resource="configmaps",verb="create"';
      expect(value(`${body}_count{${created}}`)).toBe(2);
      expect(value(`${body}_bucket{le="50000",${created}}`)).toBe(1);
      expect(value(`${body}_bucket{le="150000",${created}}`)).toBe(2);
      const events = 'group="",version="v1",resource="configmaps"';
      expect(value(`apiserver_watch_events_sizes_bucket{le="1024",${events}}`)).toBeGreaterThanOrEqual(1);
      expect(value(`apiserver_watch_events_sizes_bucket{le="+Inf",${events}}`)).toBe(
        value(`apiserver_watch_events_total{${events}}`),
      );
      watch.close();
    } finally {
      await stand.stop();
    }
  });
});
