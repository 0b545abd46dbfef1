// The agent's kubelet server beside the campaign's API server, which it asks about callers; its pods and logs are
// pretended, and a log holds a marker. And what callers try there.

import { createKubeletServer } from '../../../agent/server/kubelet-server.ts';
import type { KubeletServer } from '../../../agent/server/options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import type { TestApiServer } from '../../support/api-server.ts';
import { agentOptions, FakeLogs, FakePods, FakeRuntime, PAGES } from '../../unit/agent/server/support.ts';
import type { Random } from '../random.ts';
import type { Markers } from './markers.ts';
import type { HostileRequest } from './requests.ts';

export async function startKubelet(stand: TestApiServer, markers: Markers, directory: string): Promise<KubeletServer> {
  const logs = new FakeLogs();
  logs.chunks = [`${markers.make('log', 'demo/web')}\n`];
  const { certPath } = stand.server.pki.ca;
  const as = stand.server.pki.clients.agent;
  const server = createKubeletServer({
    options: agentOptions(directory, {
      authentication: { x509: { clientCAFile: certPath }, webhook: { enabled: true }, anonymous: { enabled: false } },
      authorization: { mode: 'Webhook' },
    }),
    pods: new FakePods(),
    runtime: new FakeRuntime(),
    logs,
    ...PAGES,
    reviews: {
      create: async <T>(path: string, body: unknown): Promise<T> => {
        const { code, text, json } = await stand.call({ method: 'POST', path, as, body });
        if (code >= 300) throw new Error(`${path}: ${code} ${text}`);
        return json as T;
      },
    },
    tracer: new Tracer(),
    clock: systemClock,
  });
  await server.listen();
  return server;
}

const PATHS = [
  '/pods',
  '/runningpods/',
  '/healthz',
  '/healthz/syncloop',
  '/metrics',
  '/metrics/cadvisor',
  '/stats/summary',
  '/configz',
  '/logs/',
  '/logs/',
  '/debug/pprof/',
  '/containerLogs/demo/web/c',
  '/containerLogs/demo/web/c?follow=false&tailLines=5',
  '/exec/demo/web/c?command=id&output=1',
  '/attach/demo/web/c?output=1',
  '/run/demo/web/c?cmd=id',
  '/portForward/demo/web',
  '/../pods',
  '/%70ods',
  '//pods',
  '/',
] as const;

export function kubeletRequest(random: Random): HostileRequest {
  const method = random.pick(['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']);
  const upgrade =
    random.next() < 0.15 ? { Connection: 'Upgrade', Upgrade: random.pick(['SPDY/3.1', 'websocket', 'h2c']) } : {};
  const as =
    random.next() < 0.15 ? { 'Impersonate-User': 'kubernetes-admin', 'Impersonate-Group': ['system:masters'] } : {};
  return {
    verb: 'get',
    method,
    path: random.pick(PATHS),
    resource: 'nodes/proxy',
    namespace: '',
    name: 'n1',
    headers: { ...upgrade, ...as },
    overreaches: false,
  };
}
