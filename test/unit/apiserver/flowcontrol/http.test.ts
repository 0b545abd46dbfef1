// Priority and fairness as clients see it: headers, refusals, conditions, tables and figures.

import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const FLOW = '/apis/flowcontrol.apiserver.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const DEBUG = '/debug/api_priority_and_fairness';

let stand: TestApiServer;
let bob: Credentials;
beforeAll(async () => {
  stand = await TestApiServer.start({ limits: { maxRequestsInflight: 6, maxMutatingRequestsInflight: 4 } });
  bob = await stand.certificate('bob');
  await stand.admit('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'bob' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
  });
});
afterAll(() => stand.stop());

/** A request whose body never comes: it is executed for as long as it is open. */
async function openRequest(): Promise<() => Promise<void>> {
  const { cert = '', key = '' } = bob;
  const open = request(`${stand.server.url}${MAPS}`, {
    method: 'POST',
    ca: stand.server.pki.ca.cert,
    cert,
    key,
    headers: { 'content-type': 'application/json', 'content-length': '100' },
  });
  const closed = new Promise((resolve) => open.once('close', resolve));
  open.once('error', () => undefined);
  open.flushHeaders();
  return async () => {
    open.destroy();
    await closed;
  };
}

async function uidOf(plural: string, name: string): Promise<unknown> {
  return at(await stand.admit('GET', `${FLOW}/${plural}/${name}`), 'metadata', 'uid');
}

const conditions = async (name: string): Promise<unknown> =>
  at(await stand.admit('GET', `${FLOW}/flowschemas/${name}`), 'status', 'conditions', 0);

describe('responses', () => {
  it('name the schema and the level by their UIDs', async () => {
    const expected = [
      await uidOf('flowschemas', 'global-default'),
      await uidOf('prioritylevelconfigurations', 'global-default'),
    ];
    for (const path of [MAPS, '/api/v1/nodes/x']) {
      const { headers } = await stand.call({ path, as: bob });
      expect([headers['x-kubernetes-pf-flowschema-uid'], headers['x-kubernetes-pf-prioritylevel-uid']]).toEqual(
        expected,
      );
    }
  });

  it('are 429 where the level rejects, and the flood of one level leaves the others alone', async () => {
    const limited = { nominalConcurrencyShares: 1, borrowingLimitPercent: 0, limitResponse: { type: 'Reject' } };
    const level = { metadata: { name: 'one' }, spec: { type: 'Limited', limited } };
    await stand.admit('POST', `${FLOW}/prioritylevelconfigurations`, level);
    const rule = {
      subjects: [{ kind: 'User', user: { name: 'bob' } }],
      resourceRules: [{ verbs: ['*'], apiGroups: [''], resources: ['configmaps'], namespaces: ['*'] }],
    };
    const spec = { matchingPrecedence: 50, priorityLevelConfiguration: { name: 'one' }, rules: [rule] };
    await stand.admit('POST', `${FLOW}/flowschemas`, { metadata: { name: 'bobs' }, spec });
    const uid = await uidOf('flowschemas', 'bobs');
    await vi.waitFor(async () => {
      const { headers } = await stand.call({ path: MAPS, as: bob });
      expect(headers['x-kubernetes-pf-flowschema-uid']).toBe(uid);
    });
    const close = await openRequest();
    await vi.waitFor(async () => {
      const { code, text, headers } = await stand.call({ path: MAPS, as: bob });
      expect([code, text, headers['retry-after'], headers['x-kubernetes-pf-flowschema-uid']]).toEqual([
        429,
        'Too many requests, please try again later.\n',
        '1',
        uid,
      ]);
    });
    expect((await stand.call({ path: '/api/v1/namespaces/default/secrets', as: bob })).code).toBe(200);
    expect((await stand.call({ path: MAPS, as: stand.admin })).code).toBe(200);
    const requests = String((await stand.call({ path: `${DEBUG}/dump_requests`, as: stand.admin })).text);
    expect(requests).toMatch(/^one, +bobs, +-1, +-1, /m);
    await close();
    await vi.waitFor(async () => expect((await stand.call({ path: MAPS, as: bob })).code).toBe(200));
  });

  it('of requests that wait come once there is a seat; a client that leaves waits no more', async () => {
    const queuing = { queues: 1, handSize: 1, queueLengthLimit: 10 };
    const limited = {
      nominalConcurrencyShares: 1,
      borrowingLimitPercent: 0,
      limitResponse: { type: 'Queue', queuing },
    };
    const path = `${FLOW}/prioritylevelconfigurations/one`;
    await stand.admit('PATCH', path, { spec: { limited } }, { 'content-type': 'application/merge-patch+json' });
    const level = async (): Promise<string[]> => {
      const { text } = await stand.call({ path: `${DEBUG}/dump_priority_levels`, as: stand.admin });
      return (/^one, .*$/m.exec(text)?.[0] ?? '').split(/, +/);
    };
    await vi.waitFor(async () => {
      const { text } = await stand.call({ path: `${DEBUG}/dump_queues`, as: stand.admin });
      expect(text).toMatch(/^one, /m);
    });
    const close = await openRequest();
    await vi.waitFor(async () => expect((await level()).slice(4, 6)).toEqual(['0', '1']));
    const waits = stand.call({ path: MAPS, as: bob });
    await vi.waitFor(async () => expect((await level())[4]).toBe('1'));
    const leaves = await openRequest();
    await vi.waitFor(async () => expect((await level())[4]).toBe('2'));
    await leaves();
    await vi.waitFor(async () => expect((await level())[9]).toBe('1'));
    await close();
    expect((await waits).code).toBe(200);
  });

  it('of a watch: its seat is free once it is open', async () => {
    const { close, ended } = await stand.watch(`${MAPS}?watch=1`, bob);
    expect((await stand.call({ path: MAPS, as: bob })).code).toBe(200);
    close();
    ended.catch(() => undefined);
  });
});

describe('the condition Dangling', () => {
  it('follows the level', async () => {
    const found = { type: 'Dangling', status: 'False', reason: 'Found' };
    await vi.waitFor(async () => expect(await conditions('global-default')).toMatchObject(found));
    const spec = { ...Object(at(await stand.admit('GET', `${FLOW}/flowschemas/bobs`), 'spec')) };
    spec.priorityLevelConfiguration = { name: 'later' };
    await stand.admit('POST', `${FLOW}/flowschemas`, { metadata: { name: 'lost' }, spec });
    await vi.waitFor(async () =>
      expect(await conditions('lost')).toMatchObject({
        status: 'True',
        reason: 'NotFound',
        message:
          'This FlowSchema references the PriorityLevelConfiguration object named "later" but there is no such object',
      }),
    );
    const limited = { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } };
    const level = { metadata: { name: 'later' }, spec: { type: 'Limited', limited } };
    await stand.admit('POST', `${FLOW}/prioritylevelconfigurations`, level);
    await vi.waitFor(async () => expect(await conditions('lost')).toMatchObject(found));
    const managers = at(await stand.admit('GET', `${FLOW}/flowschemas/lost`), 'metadata', 'managedFields');
    expect(JSON.stringify(managers)).toContain('api-priority-and-fairness-config-consumer-v1');
  });
});

describe('figures', () => {
  it('have kube-apiserver’s names', async () => {
    const { text } = await stand.call({ path: '/metrics', as: stand.admin });
    for (const line of [
      /^apiserver_flowcontrol_dispatched_requests_total\{priority_level="one",flow_schema="bobs"\} [1-9]/m,
      /^apiserver_flowcontrol_rejected_requests_total\{priority_level="one",flow_schema="bobs",reason="concurrency-limit"\} [1-9]/m,
      /^apiserver_flowcontrol_rejected_requests_total\{priority_level="one",flow_schema="bobs",reason="time-out"\} 1/m,
      /^apiserver_flowcontrol_current_inqueue_requests\{priority_level="one",flow_schema="bobs"\} 0/m,
      /^apiserver_flowcontrol_current_executing_requests\{priority_level="exempt",flow_schema="exempt"\} 1/m,
      /^apiserver_flowcontrol_current_executing_seats\{/m,
      /^apiserver_flowcontrol_nominal_limit_seats\{priority_level="one"\} 1/m,
      /^apiserver_flowcontrol_current_limit_seats\{priority_level="global-default"\} \d/m,
      /^apiserver_flowcontrol_request_wait_duration_seconds_count\{[^}]*execute="true"/m,
      /^apiserver_flowcontrol_request_execution_seconds_count\{[^}]*type="regular"/m,
      /^apiserver_flowcontrol_request_execution_seconds_count\{[^}]*type="watch"/m,
      /^apiserver_flowcontrol_work_estimated_seats_count\{/m,
    ]) {
      expect(text).toMatch(line);
    }
  });
});
