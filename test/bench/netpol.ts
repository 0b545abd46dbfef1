// How long it takes from the change of a pod's label, as the API server takes it, to the set in the kernel: the enforcer of one node among 500
// pods and 50 policies, with a real API server, in a network namespace of its own. As root: sh scripts/node24 test/bench/netpol.ts

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { netpolObjects } from '../../cli/lab/netpol.ts';
import { makeObjects } from '../../cli/lab/system-objects.ts';
import { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import { systemClock } from '../../lib/clock.ts';
import { type Exec, exec } from '../../lib/exec.ts';
import { Tracer } from '../../lib/trace.ts';
import { runNetpol } from '../../netpol/main.ts';
import { type Credentials, TestApiServer } from '../support/api-server.ts';
import { median } from '../support/median.ts';

const [PODS, POLICIES, CHANGES] = [500, 50, 41];
const NODE = 'bench';

async function measure(): Promise<void> {
  const api = await TestApiServer.start();
  const access = ({ cert = '', key = '' }: Credentials) => ({
    server: api.server.url,
    ca: api.server.pki.ca.cert,
    clientCert: cert,
    clientKey: key,
  });
  const admin = new ApiClient(access(api.admin), { tracer: new Tracer(), clock: systemClock, userAgent: 'bench' });
  await makeObjects(admin, netpolObjects());
  await admin.create(resourcePath('v1', 'namespaces'), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'bench' },
  });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await admin.create(resourcePath('v1', 'serviceaccounts', { namespace: 'bench' }), account);
  const pods = resourcePath('v1', 'pods', { namespace: 'bench' });
  for (let index = 0; index < PODS; index++) {
    const name = `pod-${index}`;
    const spec = { nodeName: NODE, containers: [{ name: 'c', image: 'none' }] };
    const labels = { app: `app-${index % POLICIES}` };
    await admin.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec });
    const ip = `10.9.${index >> 8}.${index & 255}`;
    await admin.patch(`${pods}/${name}/status`, { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } }, 'merge');
  }
  const policies = resourcePath('networking.k8s.io/v1', 'networkpolicies', { namespace: 'bench' });
  for (let index = 0; index < POLICIES; index++) {
    const from = [{ podSelector: { matchLabels: { access: `app-${index}` } } }];
    const spec = { podSelector: { matchLabels: { app: `app-${index}` } }, ingress: [{ from }] };
    const metadata = { name: `policy-${index}` };
    await admin.create(policies, { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
  }
  const ready = Promise.withResolvers<void>();
  let written = Promise.withResolvers<void>();
  let inNft = 0;
  const run: Exec = async (file, args, options) => {
    const begun = performance.now();
    const result = await exec(file, args, options);
    inNft = performance.now() - begun;
    if (file === 'nft' && args.includes('-f')) written.resolve();
    return result;
  };
  const stop = new AbortController();
  const running = runNetpol({
    access: access(api.server.pki.clients.netpol),
    nodeName: NODE,
    table: 'bench',
    syncPeriodMs: 3_600_000,
    tracer: new Tracer(),
    clock: systemClock,
    log: (line) => process.stdout.write(`${line}\n`),
    signal: stop.signal,
    onReady: ready.resolve,
    run,
  });
  await ready.promise;
  const all: number[] = [];
  const nft: number[] = [];
  for (let turn = 0; turn < CHANGES; turn++) {
    written = Promise.withResolvers<void>();
    const begun = performance.now();
    await admin.patch(`${pods}/pod-${turn}`, { metadata: { labels: { access: 'app-7' } } }, 'merge');
    await written.promise;
    all.push(performance.now() - begun);
    nft.push(inNft);
  }
  const longest = Math.max(...all).toFixed(0);
  process.stdout.write(
    `label to kernel: ${median(all).toFixed(0)} ms, of that nft ${median(nft).toFixed(0)} ms (median of ${CHANGES}; longest ${longest} ms)\n`,
  );
  stop.abort();
  await running;
  admin.close();
  await api.stop();
}

const NAMESPACE = `nodelet-bench-${process.pid}`;
if (process.argv[2] === 'inside') {
  await measure();
} else {
  execFileSync('ip', ['netns', 'add', NAMESPACE]);
  try {
    execFileSync('ip', ['-n', NAMESPACE, 'link', 'set', 'lo', 'up']);
    const self = fileURLToPath(import.meta.url);
    execFileSync('ip', ['netns', 'exec', NAMESPACE, process.execPath, self, 'inside'], { stdio: 'inherit' });
  } finally {
    execFileSync('ip', ['netns', 'delete', NAMESPACE]);
  }
}
