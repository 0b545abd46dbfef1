// The API server and the kubelet API in this process, with short time-outs, for hostile clients; and a client of each that
// has a credential.

import { request } from 'node:https';
import { join } from 'node:path';
import { type RunningApiServer, startApiServer } from '../../../apiserver/main.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { ConnectionTimeouts } from '../../../lib/connection-guard.ts';
import type { ConnectionLimits } from '../../../lib/connection-limits.ts';
import { Tracer } from '../../../lib/trace.ts';
import { ServerStand } from '../../unit/agent/server/stand.ts';

export interface Target {
  readonly name: string;
  readonly port: number;
  /** Asks something as a known caller. Rejects when there is no good answer within the time. */
  ask(): Promise<void>;
}

export interface Servers {
  readonly targets: readonly [Target, Target];
  readonly log: readonly string[];
  close(): Promise<void>;
}

/** For giving up only. */
const ANSWER_MS = 180_000;

function get(port: number, path: string, credential: { readonly cert: string; readonly key: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    const { cert, key } = credential;
    const call = request({ host: '127.0.0.1', port, path, cert, key, rejectUnauthorized: false, agent: false });
    call.setTimeout(ANSWER_MS, () => call.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
    call.on('error', reject);
    call.on('response', (response) => {
      response.resume().on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`${path} was answered with ${response.statusCode}`));
      });
      response.on('error', reject);
    });
    call.end();
  });
}

export interface ServersOptions {
  readonly timeouts?: Partial<ConnectionTimeouts>;
  readonly limits?: ConnectionLimits;
}

export async function startServers(directory: string, connections: ServersOptions = {}): Promise<Servers> {
  const log: string[] = [];
  const api: RunningApiServer = await startApiServer({
    pkiDir: join(directory, 'pki'),
    dbPath: join(directory, 'store.db'),
    address: '127.0.0.1',
    port: 0,
    hosts: [],
    tracer: new Tracer(),
    clock: systemClock,
    connections,
    log: (line) => log.push(`API server: ${line}`),
  });
  const stand = await ServerStand.make(directory);
  const { caFile, cert, key } = await stand.credentials('kube-apiserver-kubelet-client', 'system:masters');
  stand.answer = () => ({ status: { allowed: true } });
  const kubeletPort = await stand.start(
    { authentication: { x509: { clientCAFile: caFile } } },
    { clock: systemClock, connections, log: (level, line) => log.push(`agent: ${level} ${line}`) },
  );
  const admin = api.pki.clients.admin;
  return {
    targets: [
      { name: 'API server', port: api.port, ask: () => get(api.port, '/api/v1/namespaces', admin) },
      { name: 'kubelet API', port: kubeletPort, ask: () => get(kubeletPort, '/pods', { cert, key }) },
    ],
    log,
    async close() {
      await stand.close();
      await api.close();
    },
  };
}
