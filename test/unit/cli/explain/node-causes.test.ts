// What keeps a node from the API server, by tables: certificates, DNS, TCP, TLS, HTTP, clocks, an agent that does not run.

import { describe, expect, test } from 'vitest';
import { agentProcess, flagOf } from '../../../../cli/explain/agent-process.ts';
import { timeFault, timeLeft } from '../../../../cli/explain/certificates.ts';
import { clockOffset } from '../../../../cli/explain/clock-offset.ts';
import { answerText } from '../../../../cli/explain/collect/api-server.ts';
import type { AgentFacts, CertificateFact, KubeletApiFact, ServerAttempt } from '../../../../cli/explain/facts.ts';
import { findingsOf } from '../../../../cli/explain/findings.ts';
import { fineNode, NODE_RULES } from '../../../../cli/explain/rules/node-rules.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import type { ProcessEntry } from '../../../../lib/processes.ts';
import { before, NOW, node, pod, textOf } from './facts.ts';
import { lease, nodeFacts } from './other-facts.ts';

const HOUR = 3_600_000;

const certificate = (change: Partial<CertificateFact> = {}): CertificateFact => ({
  place: '/etc/kubernetes/kubelet.conf',
  subject: 'O=system:nodes, CN=system:node:n1',
  issuer: 'CN=kubernetes',
  notBefore: plusMs(NOW, -HOUR),
  notAfter: plusMs(NOW, 100 * 24 * HOUR),
  signedByCa: true,
  selfMade: false,
  ...change,
});

const attempt = (change: Partial<ServerAttempt> = {}): ServerAttempt => ({
  server: 'https://cp.example.com:6443',
  request: 'GET /api/v1/nodes/n1',
  step: 'answered',
  answer: '200 OK',
  status: 200,
  ...change,
});

const agent = (change: Partial<AgentFacts> = {}): AgentFacts => ({
  kubeconfig: '/etc/kubernetes/kubelet.conf',
  problem: undefined,
  process: { pid: 77, state: 'S' },
  certificate: certificate(),
  attempt: attempt(),
  ...change,
});

const api = (change: Partial<KubeletApiFact> = {}): KubeletApiFact => ({
  address: '10.0.0.5:10250',
  state: 'serves',
  answer: 'it serves',
  certificate: certificate({ place: '10.0.0.5:10250', subject: 'CN=n1', issuer: 'CN=n1-ca@170', selfMade: true }),
  throughServer: undefined,
  ...change,
});

const refused = { step: 'http', status: 401, answer: '401 Unauthorized' } as const;

const cases: readonly {
  readonly what: string;
  readonly facts: ReturnType<typeof nodeFacts>;
  readonly rule: string;
  readonly text: RegExp;
}[] = [
  {
    what: 'all is well',
    facts: nodeFacts({ agent: agent(), kubeletApi: api(), lease: lease(3), clock: { offsetMs: 200, marginMs: 510 } }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'a client certificate that has expired',
    facts: nodeFacts({
      agent: agent({ certificate: certificate({ notAfter: plusMs(NOW, -2 * HOUR) }), attempt: attempt(refused) }),
    }),
    rule: 'node-certificate',
    text: /the client certificate of its agent expired 2 h ago[\s\S]*GET \/api\/v1\/nodes\/n1 → https:\/\/cp\.example\.com:6443 with the agent’s client certificate: 401[\s\S]*system:node:n1/,
  },
  {
    what: 'one that is not valid yet, by the server’s clock',
    facts: nodeFacts({
      agent: agent({ certificate: certificate({ notBefore: plusMs(NOW, -60_000) }) }),
      clock: { offsetMs: HOUR, marginMs: 500 },
    }),
    rule: 'node-certificate',
    text: /client certificate of its agent is not valid yet: it begins in 59 min/,
  },
  {
    what: 'one of another CA',
    facts: nodeFacts({
      agent: agent({ certificate: certificate({ signedByCa: false, issuer: 'CN=old' }), attempt: attempt(refused) }),
    }),
    rule: 'node-certificate',
    text: /signed by another CA \(CN=old\)/,
  },
  {
    what: 'one of another CA that the server accepts',
    facts: nodeFacts({ agent: agent({ certificate: certificate({ signedByCa: false }) }) }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'a file that is missing',
    facts: nodeFacts({
      agent: agent({ problem: 'kubeconfig /k: client-certificate /pki/c.pem: no such file', attempt: undefined }),
    }),
    rule: 'node-certificate',
    text: /cannot log in at the API server: .*\/pki\/c\.pem: no such file/,
  },
  {
    what: 'credentials that are refused, with a good certificate',
    facts: nodeFacts({ agent: agent({ attempt: attempt(refused) }) }),
    rule: 'node-server',
    text: /does not accept its agent’s credentials: 401/,
  },
  {
    what: 'DNS',
    facts: nodeFacts({ agent: agent({ attempt: attempt({ step: 'dns', status: undefined, answer: 'ENOTFOUND' }) }) }),
    rule: 'node-server',
    text: /the name cp\.example\.com cannot be resolved \(DNS\)[\s\S]*getent hosts cp\.example\.com/,
  },
  {
    what: 'TCP',
    facts: nodeFacts({
      agent: agent({ attempt: attempt({ step: 'tcp', status: undefined, answer: 'connection refused' }) }),
    }),
    rule: 'node-server',
    text: /\(TCP\): connection refused[\s\S]*this worked: the name cp\.example\.com was found$/m,
  },
  {
    what: 'TLS',
    facts: nodeFacts({
      agent: agent({ attempt: attempt({ step: 'tls', status: undefined, answer: 'its certificate has expired' }) }),
    }),
    rule: 'node-server',
    text: /TLS fails: its certificate has expired[\s\S]*takes connections[\s\S]*a wrong clock/,
  },
  {
    what: 'HTTP',
    facts: nodeFacts({
      agent: agent({ attempt: attempt({ step: 'http', status: 503, answer: '503 etcd is away' }) }),
    }),
    rule: 'node-server',
    text: /answers its agent with HTTP 503 etcd is away[\s\S]*TLS was agreed on/,
  },
  {
    what: 'a Node that is deleted meanwhile is no failure of the way',
    facts: nodeFacts({ agent: agent({ attempt: attempt({ step: 'http', status: 404, answer: '404' }) }) }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'a clock that is ahead',
    facts: nodeFacts({ agent: agent(), clock: { offsetMs: 10 * 60_000, marginMs: 500 }, lease: lease(3) }),
    rule: 'node-clock',
    text: /its clock is 10 min ahead of the API server’s[\s\S]*Date header/,
  },
  {
    what: 'a clock that is behind',
    facts: nodeFacts({ agent: agent(), clock: { offsetMs: -70_000, marginMs: 500 }, lease: lease(3) }),
    rule: 'node-clock',
    text: /its clock is 1 min 10 s behind the API server’s/,
  },
  {
    what: 'a lease of the future, seen from elsewhere',
    facts: nodeFacts({ isHere: false, clock: { offsetMs: 0, marginMs: 500 }, lease: lease(-300) }),
    rule: 'node-clock',
    text: /its clock is 5 min ahead[\s\S]*lease was renewed 5 min in the future/,
  },
  {
    what: 'another machine’s wrong clock is not the node’s',
    facts: nodeFacts({ isHere: false, clock: { offsetMs: 300_000, marginMs: 500 }, lease: lease(305) }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'an agent that does not run',
    facts: nodeFacts({
      agent: agent({ process: undefined }),
      kubeletApi: api({ state: 'refused', answer: 'ECONNREFUSED', certificate: undefined }),
      lease: lease(12),
    }),
    rule: 'node-silent',
    text: /its agent does not run: it last renewed its lease 12 s ago[\s\S]*connect → 10\.0\.0\.5:10250: ECONNREFUSED/,
  },
  {
    what: 'an agent that was not found and serves is one of an unknown kind',
    facts: nodeFacts({ agent: agent({ process: undefined }), kubeletApi: api(), lease: lease(12) }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'an agent that is stopped',
    facts: nodeFacts({ agent: agent({ process: { pid: 77, state: 'T' } }), lease: lease(90) }),
    rule: 'node-silent',
    text: /its agent is stopped \(process 77\): it last renewed its lease 1 min 30 s ago/,
  },
  {
    what: 'a serving certificate that has expired',
    facts: nodeFacts({ kubeletApi: api({ certificate: certificate({ notAfter: plusMs(NOW, -HOUR) }) }) }),
    rule: 'node-serving-certificate',
    text: /serving certificate of its agent expired 1 h ago/,
  },
  {
    what: 'one that the API server refuses',
    facts: nodeFacts({
      kubeletApi: api({
        certificate: certificate({ signedByCa: false, issuer: 'CN=old' }),
        throughServer: '500 x509: certificate signed by unknown authority',
      }),
    }),
    rule: 'node-serving-certificate',
    text: /is signed by another CA \(CN=old\)[\s\S]*GET healthz → 10\.0\.0\.5:10250: 500 x509/,
  },
  {
    what: 'one that the API server does not check',
    facts: nodeFacts({
      kubeletApi: api({ certificate: certificate({ signedByCa: false }), throughServer: '200 OK' }),
    }),
    rule: 'node-ready',
    text: /it is Ready/,
  },
  {
    what: 'one whose file is missing',
    facts: nodeFacts({ servingProblem: 'tlsCertFile /pki/s.crt: no such file' }),
    rule: 'node-serving-file',
    text: /cannot be read: tlsCertFile \/pki\/s\.crt: no such file/,
  },
  {
    what: 'pressure, with the pods that were evicted',
    facts: nodeFacts({
      node: node('n1', {
        status: {
          conditions: [{ type: 'MemoryPressure', status: 'True', message: 'low', lastTransitionTime: before(9) }],
        },
      }),
      pods: [pod({ status: { phase: 'Failed', reason: 'Evicted' } })],
    }),
    rule: 'node-pressure',
    text: /it is short of memory[\s\S]*evicted: demo\/web/,
  },
];

describe('what is between a node and the API server', () => {
  test.each(cases)('$what: $rule', ({ facts, rule, text }) => {
    const [first] = findingsOf(NODE_RULES, facts);
    expect(textOf(first)).toMatch(text);
    expect(first?.rule).toBe(rule);
  });

  test('a good connection is among what is fine, with the days that certificates have left', () => {
    const clock = { offsetMs: 200, marginMs: 510 };
    expect(fineNode(nodeFacts({ agent: agent(), kubeletApi: api(), clock }))).toEqual([
      'its agent’s way to the API server is open (https://cp.example.com:6443)',
      'the client certificate of its agent: 100 days left',
      'its agent serves at 10.0.0.5:10250; the certificate there: 100 days left, made by itself',
      'its clock agrees with the API server’s',
      '0 pods; allocatable: 2 cpu, 1Gi memory, 110 pods',
    ]);
  });
});

test.each([
  ['Fri, 02 Jan 2026 12:00:00 GMT', 0, 40, { offsetMs: -480, marginMs: 520 }],
  ['Fri, 02 Jan 2026 11:59:00 GMT', 0, 0, { offsetMs: 59_500, marginMs: 500 }],
  ['Fri, 02 Jan 2026 13:00:00 GMT', 0, 1000, { offsetMs: -3_600_000, marginMs: 1000 }],
  ['yesterday', 0, 0, undefined],
  [undefined, 0, 0, undefined],
])('clock offset for the header %s', (header, requested, answered, offset) => {
  expect(clockOffset(header, plusMs(NOW, requested), plusMs(NOW, answered))).toEqual(offset);
});

test('times of a certificate', () => {
  expect(timeFault(certificate(), NOW)).toBeUndefined();
  expect(timeFault(certificate(), epochMs(0))).toMatch(/^is not valid yet/);
  expect(timeLeft(certificate({ notAfter: plusMs(NOW, 90 * 60_000) }), NOW)).toBe('1 h 30 min left');
});

test.each([
  ['{"kind":"Status","message":"nodes \\"n1\\" is forbidden"}', '403 nodes "n1" is forbidden'],
  ['{"message":""}', '403 Forbidden'],
  ['<html>', '403 Forbidden'],
  ['', '403 Forbidden'],
])('the answer %s of a server', (body, text) => {
  expect(answerText(403, 'Forbidden', body)).toBe(text);
});

const process = (pid: number, argv: string, state = 'S'): ProcessEntry => ({
  pid,
  ppid: 1,
  startTime: 1,
  comm: 'x',
  state,
  argv: argv === '' ? [] : argv.split(' '),
});
const processes = [
  process(1, ''),
  process(2, '/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override other'),
  process(3, 'node /opt/nodelet/cli/main.ts agent --kubeconfig /a.conf --hostname-override n1'),
  process(4, 'node /opt/nodelet/cli/main.ts agent --kubeconfig /b.conf'),
  process(5, 'vi agent --kubeconfig /a.conf'),
  process(6, 'kubelet'),
  process(7, 'kubelet --kubeconfig', 'Z'),
];

test.each([
  [{ kubeconfig: '/a.conf', nodeName: 'x' }, 3],
  [{ kubeconfig: undefined, nodeName: 'other' }, 2],
  [{ kubeconfig: undefined, nodeName: 'host' }, 4],
  [{ kubeconfig: '/none.conf', nodeName: 'n1' }, undefined],
])('the agent of %j among the processes', (wanted, pid) => {
  expect(agentProcess(processes, wanted)?.pid).toBe(pid);
});

test('flags', () => {
  expect(flagOf(['a', '--x=1=2'], 'x')).toBe('1=2');
  expect(flagOf(['a', '--x'], 'x')).toBeUndefined();
  expect(flagOf(['a', '--xy', '1'], 'x')).toBeUndefined();
});
