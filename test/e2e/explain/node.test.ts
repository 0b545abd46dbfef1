// `nodelet explain node` on a node that is cut off from its API server in every way: a lab of its own, of which the agent is stopped,
// killed, and started with other files. The requests that fail are real ones, with the agent's own kubeconfig.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { generateKeyPair, issueCertificate, type Signer } from '../../../apiserver/pki/keys.ts';
import { writeKubeconfig } from '../../../apiserver/pki/kubeconfig.ts';
import { agentProgram } from '../../../cli/lab/programs.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node } from '../../../client/types.ts';
import { plusMs, systemClock } from '../../../lib/clock.ts';
import { exec } from '../../../lib/exec.ts';
import { apply, condition, eventually, FOREVER, nodeWhen, shellPod } from '../agent/harness.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';
import { type Answer, answerWhen, chainText } from './answers.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Short, so that it is soon late. s */
const LEASE_SECONDS = 2;
/** How far the clock of the agent is put forward. ms */
const SHIFT_MS = 10 * 60_000;
const COMMAND = new URL('../../../bin/nodelet', import.meta.url).pathname;

let lab: PrivateLab;
let directory: string;
let server: string;
let ca: Signer;
let foreign: Signer;
/** The agent's own files, as the lab has made them. */
let kubeconfig: string;
let config: string;
const servers: Server[] = [];

/** Variables for the agent's next start, one a line. */
const environment = (): string => join(directory, 'agent.env');

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-explain-node-'));
  await writeFile(environment(), '');
  await writeFile(join(directory, 'ahead.mjs'), ahead());
  lab = await startLab({
    images: 'none',
    kills: true,
    kubeletConfiguration: { nodeLeaseDurationSeconds: LEASE_SECONDS },
    agentProgram: (paths, state, flags) => {
      const { command, args } = agentProgram(paths, state, flags);
      return { command: 'sh', args: ['-c', `exec env $(cat ${environment()}) "$0" "$@"`, command, ...args] };
    },
  });
  kubeconfig = await readFile(lab.paths.kubeconfigs.agent, 'utf8');
  config = await readFile(lab.paths.kubeletConfig, 'utf8');
  server = lab.client.access.server;
  const file = (name: string): Promise<string> => readFile(join(lab.paths.pkiDir, name), 'utf8');
  ca = { cert: await file('ca.crt'), key: await file('ca.key') };
  const keys = generateKeyPair();
  foreign = {
    cert: await issueCertificate({ commonName: 'another-ca', usage: 'ca', ...life(0, DAY_MS) }, keys),
    key: keys.privateKey,
  };
});

afterAll(async () => {
  for (const each of servers) each.close();
  await lab?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** A module that puts a process' clock forward, for `node --import`. */
function ahead(): string {
  return `const Real = Date;
globalThis.Date = class extends Real {
  constructor(...given) { if (given.length === 0) super(Real.now() + ${SHIFT_MS}); else super(...given); }
  static now() { return Real.now() + ${SHIFT_MS}; }
};
`;
}

function life(fromMs: number, untilMs: number) {
  const now = systemClock.now();
  return { notBefore: plusMs(now, fromMs), notAfter: plusMs(now, untilMs) };
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

async function pair(usage: 'client' | 'server', signer: Signer, fromMs: number, untilMs: number): Promise<Pair> {
  const keys = generateKeyPair();
  const commonName = usage === 'client' ? `system:node:${lab.nodeName}` : 'localhost';
  const names = usage === 'client' ? { organization: 'system:nodes' } : { hosts: ['localhost', '127.0.0.1'] };
  const request = { commonName, usage, ...names, ...life(fromMs, untilMs) };
  return { cert: await issueCertificate(request, keys, signer), key: keys.privateKey };
}

const goodClient = (): Promise<Pair> => pair('client', ca, -HOUR_MS, DAY_MS);

async function useKubeconfig(own: { readonly client?: Pair; readonly server?: string }): Promise<void> {
  const client = own.client ?? (await goodClient());
  await writeKubeconfig(lab.paths.kubeconfigs.agent, {
    server: own.server ?? server,
    ca: ca.cert,
    user: 'agent',
    client,
  });
}

async function port(listener: Server): Promise<number> {
  servers.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return (listener.address() as AddressInfo).port;
}

/** Waits for this rule's verdict, and until the rest of the answer passes `check`, which throws. */
const verdict = (rule: string, words: RegExp, check: (answer: Answer) => void = () => undefined): Promise<Answer> =>
  answerWhen(lab, 'node', lab.nodeName, (answer) => {
    expect(answer.rule).toBe(rule);
    expect(answer.verdict).toMatch(words);
    check(answer);
  });
/** The same, for a text of the chain and its calls. */
const verdictBecause = (rule: string, words: RegExp, ...because: readonly RegExp[]): Promise<Answer> =>
  verdict(rule, words, (answer) => {
    for (const text of because) expect(chainText(answer)).toMatch(text);
  });

/** Starts the agent with these files in place of the lab's, and puts those back in the end. */
async function withAgent(prepare: () => Promise<void>, body: () => Promise<void>): Promise<void> {
  await lab.lab.halt('agent');
  try {
    await prepare();
    await lab.lab.resume('agent');
    await body();
  } finally {
    await lab.lab.halt('agent');
    await writeFile(lab.paths.kubeconfigs.agent, kubeconfig);
    await writeFile(lab.paths.kubeletConfig, config);
    await writeFile(environment(), '');
    await lab.lab.resume('agent');
  }
}

async function changeConfig(change: object): Promise<void> {
  await writeFile(lab.paths.kubeletConfig, stringify({ ...parse(config), ...change }));
}

test('a node that is Ready: what is fine between its agent and the API server', async () => {
  // Its lease is a short one: in a slow moment it is late.
  await verdict('node-ready', /it is Ready/, ({ fine, alsoFound, notLookedAt }) => {
    expect({ alsoFound, notLookedAt }).toEqual({ alsoFound: [], notLookedAt: [] });
    const text = fine.join('\n');
    expect(text).toContain(`its agent’s way to the API server is open (${server})`);
    expect(text).toMatch(/the client certificate of its agent: 36\d days left/);
    expect(text).toMatch(/its agent serves at .*:\d+; the certificate there: 36\d days left, made by itself/);
    expect(text).toContain('its clock agrees with the API server’s');
  });
});

test('an agent that is stopped by a signal, and one that does not run', async () => {
  const pid = lab.lab.pid('agent');
  if (pid === undefined) throw new Error('the agent does not run');
  process.kill(pid, 'SIGSTOP');
  try {
    const stopped = await verdict(
      'node-silent',
      /its agent is stopped \(process \d+\): it last renewed its lease \d+ (s|min)( \d+ s)? ago/,
    );
    expect(stopped.verdict).toContain(`process ${pid}`);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await verdict('node-ready', /it is Ready/);
  await lab.lab.halt('agent');
  try {
    await verdictBecause('node-silent', /its agent does not run/, /connect → .*:\d+: ECONNREFUSED/);
  } finally {
    await lab.lab.resume('agent');
  }
});

describe('the agent’s kubeconfig, and its way to the API server', () => {
  beforeAll(async () => {
    await lab.lab.halt('agent');
  });
  afterAll(async () => {
    await writeFile(lab.paths.kubeconfigs.agent, kubeconfig);
    await lab.lab.resume('agent');
  });

  const cases: readonly {
    readonly what: string;
    readonly prepare: () => Promise<void>;
    readonly rule: string;
    readonly verdict: RegExp;
    readonly call?: RegExp;
  }[] = [
    {
      what: 'a certificate that is not valid yet',
      prepare: async () => useKubeconfig({ client: await pair('client', ca, HOUR_MS, DAY_MS) }),
      rule: 'node-certificate',
      verdict: /^the client certificate of its agent is not valid yet: it begins in (1 h|5\d min)/,
    },
    {
      what: 'a certificate of another CA',
      prepare: async () => useKubeconfig({ client: await pair('client', foreign, -HOUR_MS, DAY_MS) }),
      rule: 'node-certificate',
      verdict: /^the client certificate of its agent is signed by another CA \(CN=another-ca\)/,
      call: /GET \/api\/v1\/nodes\/.* → https:.*: 401/,
    },
    {
      what: 'a file that is missing',
      prepare: () =>
        writeFile(
          lab.paths.kubeconfigs.agent,
          kubeconfig.replace(
            /client-certificate-data: .*/,
            'client-certificate: /nonexistent/kubelet-client-current.pem',
          ),
        ),
      rule: 'node-certificate',
      verdict: /client-certificate \/nonexistent\/kubelet-client-current\.pem: no such file/,
    },
    {
      what: 'no kubeconfig',
      prepare: () => rm(lab.paths.kubeconfigs.agent),
      rule: 'node-certificate',
      verdict: /cannot log in at the API server: kubeconfig .*: no such file/,
    },
    {
      what: 'a name that DNS does not know',
      prepare: () => useKubeconfig({ server: 'https://control-plane.invalid:6443' }),
      rule: 'node-server',
      verdict: /the name control-plane\.invalid cannot be resolved \(DNS\)/,
    },
    {
      what: 'a port where nothing listens',
      prepare: () => useKubeconfig({ server: 'https://127.0.0.1:1' }),
      rule: 'node-server',
      verdict: /no connection to 127\.0\.0\.1:1 \(TCP\): connection refused/,
    },
    {
      what: 'a server that speaks plain HTTP',
      prepare: async () => useKubeconfig({ server: `https://127.0.0.1:${await port(createHttp())}` }),
      rule: 'node-server',
      verdict: /TLS fails: it does not speak TLS as expected/,
    },
    {
      what: 'a server with a certificate of another CA',
      prepare: async () => {
        const listener = createHttps(await pair('server', foreign, -HOUR_MS, DAY_MS));
        await useKubeconfig({ server: `https://localhost:${await port(listener)}` });
      },
      rule: 'node-server',
      verdict: /TLS fails: its certificate is not signed by the CA that the kubeconfig names/,
    },
    {
      what: 'a server whose certificate has expired',
      prepare: async () => {
        const listener = createHttps(await pair('server', ca, -2 * HOUR_MS, -HOUR_MS));
        await useKubeconfig({ server: `https://localhost:${await port(listener)}` });
      },
      rule: 'node-server',
      verdict: /TLS fails: its certificate has expired/,
    },
    {
      what: 'a server that is overloaded',
      prepare: async () => {
        const listener = createHttps(await pair('server', ca, -HOUR_MS, DAY_MS), (_request, response) => {
          response.writeHead(503).end(JSON.stringify({ kind: 'Status', message: 'the store is away' }));
        });
        await useKubeconfig({ server: `https://localhost:${await port(listener)}` });
      },
      rule: 'node-server',
      verdict: /answers its agent with HTTP 503 the store is away/,
    },
  ];

  test.each(cases)('$what: $rule', async ({ prepare, rule, verdict: words, call }) => {
    await prepare();
    await verdictBecause(rule, words, ...(call === undefined ? [] : [call]));
  });
});

test('an agent that runs with a certificate that has expired', async () => {
  const prepare = async (): Promise<void> => useKubeconfig({ client: await pair('client', ca, -DAY_MS, -2 * HOUR_MS) });
  await withAgent(prepare, async () => {
    await eventually('the agent to be refused', async () =>
      /Unauthorized|401/.test((await readFile(lab.paths.logFile('agent'), 'utf8')).slice(-20_000)) ? true : undefined,
    );
    await verdictBecause(
      'node-certificate',
      /^the client certificate of its agent expired 2 h/,
      /does not accept the agent \[GET .* → https:.*: 401/,
      new RegExp(`CN=system:node:${lab.nodeName}`),
    );
  });
  await nodeWhen(lab, 'Ready again', ({ status }) => status === 'True');
});

test('a serving certificate that has expired, and one whose file is missing', async () => {
  const files = { tlsCertFile: join(directory, 'serving.crt'), tlsPrivateKeyFile: join(directory, 'serving.key') };
  const prepare = async (): Promise<void> => {
    const { cert, key } = await pair('server', ca, -DAY_MS, -2 * HOUR_MS);
    await writeFile(files.tlsCertFile, cert);
    await writeFile(files.tlsPrivateKeyFile, key);
    await changeConfig(files);
  };
  await withAgent(prepare, async () => {
    const expired = /^the serving certificate of its agent expired 2 h/;
    await verdictBecause('node-serving-certificate', expired, /TLS handshake → .*:\d+: valid from/);
  });
  await withAgent(
    () => changeConfig({ ...files, tlsCertFile: '/nonexistent/serving.crt' }),
    async () => {
      await verdict('node-serving-file', /tlsCertFile \/nonexistent\/serving\.crt: no such file/);
    },
  );
});

test('a clock that is ahead: by the lease from anywhere, and on the node against the API server', async () => {
  const shifted = { NODE_OPTIONS: `--import=${join(directory, 'ahead.mjs')}` };
  const prepare = (): Promise<void> => writeFile(environment(), `NODE_OPTIONS=${shifted.NODE_OPTIONS}\n`);
  await withAgent(prepare, async () => {
    await verdictBecause(
      'node-clock',
      /^its clock is (9 min 5\d s|10 min) ahead of the API server’s/,
      /lease was renewed (9 min 5\d s|10 min) in the future/,
    );
    const args = ['explain', 'node', lab.nodeName, '--root', lab.root, '-o', 'json'];
    // The lease, which is a short one, may be late in a slow moment.
    await eventually('the answer of the node itself', async () => {
      const { code, stdout } = await exec(COMMAND, args, { env: { ...process.env, ...shifted }, timeoutMs: 60_000 });
      expect(code).toBe(1);
      const here: Answer = JSON.parse(stdout);
      expect(here.verdict).toMatch(/^its clock is (9 min 5\d s|10 min( \d+ s)?) ahead of the API server’s/);
      expect(chainText(here)).toMatch(/GET \/version → the API server: by its Date header this machine is .* ahead/);
      return true;
    });
  });
});

test('a disk that is full by the threshold, and the pod that was refused for it', async () => {
  const path = resourcePath('v1', 'pods', { namespace: 'default', name: 'evicted' });
  await withAgent(
    () => changeConfig({ evictionHard: { 'nodefs.available': '99.99%' } }),
    async () => {
      const node = resourcePath('v1', 'nodes', { name: lab.nodeName });
      await eventually('the node to be short of disk', async () =>
        condition(await lab.client.get<Node>(node), 'DiskPressure')?.status === 'True' ? true : undefined,
      );
      await apply(lab, shellPod('evicted', FOREVER, { nodeName: lab.nodeName }));
      await eventually('the pod to be refused', async () => {
        const { status } = await lab.client.get<{ status?: { reason?: string } }>(path);
        return status?.reason === 'Evicted' ? true : undefined;
      });
      await verdictBecause('node-pressure', /^it is short of disk$/, /evicted: default\/evicted/);
    },
  );
  await lab.client.delete(path, { gracePeriodSeconds: 0 });
});

test('a runtime that does not run', async () => {
  await nodeWhen(lab, 'Ready again', ({ status }) => status === 'True');
  await lab.lab.halt('containerd');
  try {
    const call = /Status → unix:.*containerd\.sock: /;
    await verdictBecause('node-runtime', /its container runtime does not answer/, call);
  } finally {
    await lab.lab.resume('containerd');
  }
  await verdict('node-ready', /it is Ready/);
});
