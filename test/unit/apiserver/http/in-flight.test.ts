// Limits of requests: how many at a time, and for how long.

import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { OverloadError } from '../../../../apiserver/flowcontrol/overload.ts';
import { InFlight, timeoutOf } from '../../../../apiserver/http/in-flight.ts';
import { parseRequest } from '../../../../apiserver/http/request.ts';
import { TestApiServer } from '../../../support/api-server.ts';
import { failureOf } from '../support.ts';

const alice = { name: 'alice', groups: ['system:authenticated'] };
const admin = { name: 'admin', groups: ['system:masters'] };
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const LIMITS = { maxRequestsInflight: 2, maxMutatingRequestsInflight: 1 };
const SHORT = { longRunning: false };

describe('requests at a time', () => {
  it('those that read and those that write are counted apart', () => {
    const inFlight = new InFlight(LIMITS);
    const place = inFlight.enter({ verb: 'create' }, alice, SHORT);
    expect(() => inFlight.enter({ verb: 'delete' }, alice, SHORT)).toThrow(OverloadError);
    inFlight.enter({ verb: 'get' }, alice, SHORT);
    inFlight.enter({ verb: 'list' }, alice, SHORT);
    expect(() => inFlight.enter({ verb: 'get' }, alice, SHORT)).toThrow(OverloadError);
    inFlight.enter({ verb: 'watch' }, alice, { longRunning: true });
    place.leave();
    place.leave();
    inFlight.enter({ verb: 'patch' }, alice, SHORT);
    expect(() => inFlight.enter({ verb: 'patch' }, alice, SHORT)).toThrow(OverloadError);
  });
  it('system:masters always get in, and take no place beyond the limit', () => {
    const inFlight = new InFlight(LIMITS);
    const first = inFlight.enter({ verb: 'create' }, alice, SHORT);
    inFlight.enter({ verb: 'create' }, admin, SHORT).leave();
    first.leave();
    inFlight.enter({ verb: 'create' }, alice, SHORT);
  });
  it('0 is no limit', () => {
    const inFlight = new InFlight({ ...LIMITS, maxRequestsInflight: 0 });
    for (let i = 0; i < 1000; i += 1) inFlight.enter({ verb: 'get' }, alice, SHORT);
  });
});

describe('how long a request may take', () => {
  const cases: readonly [string, number][] = [
    ['', 60_000],
    ['?timeout=', 60_000],
    ['?timeout=5s', 5000],
    ['?timeout=1m30s', 60_000],
    ['?timeout=0s', 60_000],
    ['?timeout=-1s', 60_000],
    ['?timeout=250ms', 250],
  ];
  it.each(cases)('"%s"', (query, ms) => {
    expect(timeoutOf(parseRequest('GET', `/api/v1/pods${query}`), 60_000)).toBe(ms);
  });
  it('anything else is 400', () => {
    const { code, message } = failureOf(() => timeoutOf(parseRequest('GET', '/api?timeout=soon'), 60_000));
    expect([code, message]).toEqual([
      400,
      'invalid timeout specified in the request URL - time: invalid duration "soon"',
    ]);
  });
});

describe('a server with limits, without priority and fairness', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start({ limits: { maxMutatingRequestsInflight: 1, priorityAndFairness: false } });
  });
  afterAll(() => stand.stop());

  it('refuses a request too many as upstream, before it is authorized, and lets the next one in again', async () => {
    const bob = await stand.certificate('bob');
    const path = '/api/v1/namespaces/default/configmaps';
    await stand.admit('POST', `${RBAC}/clusterrolebindings`, {
      metadata: { name: 'bob' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
    });
    const { cert = '', key = '' } = bob;
    // Its body never comes.
    const open = request(`${stand.server.url}${path}`, {
      method: 'POST',
      ca: stand.server.pki.ca.cert,
      cert,
      key,
      headers: { 'content-type': 'application/json', 'content-length': '100' },
    });
    const closed = new Promise((resolve) => open.once('close', resolve));
    open.once('error', () => undefined);
    open.flushHeaders();
    const call = { method: 'DELETE', path: `${path}/x`, as: bob };
    await vi.waitFor(async () => {
      const { code, text } = await stand.call(call);
      expect([code, text]).toEqual([429, 'Too many requests, please try again later.\n']);
    });
    expect((await stand.call({ ...call, as: stand.admin })).code).toBe(404);
    expect((await stand.call({ path, as: bob })).code).toBe(200);
    open.destroy();
    await closed;
    await vi.waitFor(async () => expect((await stand.call(call)).code).toBe(404));
  });

  it('504 for what takes longer than the client wants to wait', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    const data = { text: 'x'.repeat(64 * 1024) };
    await stand.admit('POST', path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'big' }, data });
    // YAML of this length is made in a thread.
    const headers = { accept: 'application/yaml' };
    const late = await stand.call({ path: `${path}/big?timeout=1ns`, as: stand.admin, headers });
    expect(late.json).toMatchObject({
      code: 504,
      reason: 'Timeout',
      message: 'Timeout: request did not complete within the allotted timeout',
    });
    expect((await stand.call({ path: `${path}/big?timeout=30s`, as: stand.admin, headers })).code).toBe(200);
  });
});
