// How long it takes to program 1,000 Services with 10 endpoints each, and one change among them: each mode, in a network namespace of
// its own, without a lab. As root: sh scripts/node24 test/bench/proxy.ts

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { execOk } from '../../lib/exec.ts';
import type { Backend, ServicePortEndpoints } from '../../proxy/backend.ts';
import { IptablesBackend } from '../../proxy/iptables/iptables.ts';
import { NftablesBackend } from '../../proxy/nftables/nftables.ts';
import type { RuleOptions } from '../../proxy/options.ts';
import { reachableEndpoints } from '../../proxy/reachable.ts';
import type { Endpoint, ServicePort } from '../../proxy/service-ports.ts';
import { median } from '../support/median.ts';

const [SERVICES, ENDPOINTS, CHANGES] = [1000, 10, 11];
const OPTIONS: RuleOptions = {
  clusterCidr: '10.128.0.0/9',
  masqueradeAll: false,
  masqueradeBit: 14,
  nodePortIPs: undefined,
  localhostNodePorts: false,
  dropInvalid: true,
  nodeIP: undefined,
};

function servicePort(index: number, count: number): ServicePortEndpoints {
  const name = `bench/service-${index}`;
  const port: ServicePort = {
    name,
    service: name,
    port: '',
    protocol: 'tcp',
    clusterIP: `10.96.${index >> 8}.${index & 255}`,
    number: 80,
    nodePort: 0,
    externalIPs: [],
    loadBalancerIPs: [],
    sourceRanges: [],
    affinitySeconds: undefined,
    internalLocal: false,
    externalLocal: false,
    healthCheckNodePort: 0,
  };
  const endpoints = Array.from({ length: count }, (_, place): Endpoint => {
    const number = index * ENDPOINTS + place;
    const ip = `10.128.${number >> 8}.${number & 255}`;
    const state = { ready: true, serving: true, terminating: false, local: false, zones: [], nodes: [] };
    return { address: `${ip}:8080`, ip, port: 8080, ...state };
  });
  return { port, reachable: reachableEndpoints(endpoints, port, { name: 'bench', zone: '' }) };
}

/** The smallest change that the kernel has to check: a chain that leads to another one. */
interface Floor {
  readonly file: string;
  readonly args: readonly string[];
  readonly stdin: (turn: number) => string;
}
const FLOORS: Readonly<Record<'iptables' | 'nftables', Floor>> = {
  iptables: {
    file: 'iptables-restore',
    args: ['--noflush'],
    stdin: (turn) => `*nat\n:BENCH-${turn} - [0:0]\n-A BENCH-${turn} -j KUBE-MARK-MASQ\nCOMMIT\n`,
  },
  nftables: {
    file: 'nft',
    args: ['-f', '-'],
    stdin: (turn) => `add chain ip kube-proxy bench-${turn} { jump mark-for-masquerade; }\n`,
  },
};

async function measure(mode: 'iptables' | 'nftables', backend: Backend): Promise<void> {
  const floor = FLOORS[mode];
  const portMap = new Map(
    Array.from({ length: SERVICES }, (_, index): [string, ServicePortEndpoints] => [
      String(index),
      servicePort(index, ENDPOINTS),
    ]),
  );
  const timed = async (full: boolean): Promise<number> => {
    const begun = performance.now();
    await backend.apply(new Map(portMap), OPTIONS, full);
    return performance.now() - begun;
  };
  const all = await timed(true);
  const changes: number[] = [];
  for (let turn = 0; turn < CHANGES; turn++) {
    portMap.set('500', servicePort(500, ENDPOINTS - 1 - (turn % 2)));
    changes.push(await timed(false));
  }
  const more: number[] = [];
  const less: number[] = [];
  for (let turn = 0; turn < CHANGES; turn++) {
    portMap.set('another', servicePort(SERVICES + turn, ENDPOINTS));
    more.push(await timed(false));
    portMap.delete('another');
    less.push(await timed(false));
  }
  // The share of the program and the kernel: the smallest change, without the proxy.
  const floors: number[] = [];
  for (let turn = 0; turn < CHANGES; turn++) {
    const begun = performance.now();
    await execOk(floor.file, floor.args, { stdin: floor.stdin(turn) });
    floors.push(performance.now() - begun);
  }
  const ms = (times: readonly number[]): string => `${median(times).toFixed(0)} ms`;
  process.stdout.write(
    `${mode}: one chain with one rule, by ${floor.file} alone ${ms(floors)}\n${mode}: all ${all.toFixed(0)} ms, one change ${ms(changes)}, a Service more ${ms(more)}, a Service less ${ms(less)} (medians of ${CHANGES})\n`,
  );
}

const NAMESPACE = `nodelet-bench-${process.pid}`;
if (process.argv[2] === 'inside') {
  await measure('iptables', new IptablesBackend('bench'));
  await measure('nftables', new NftablesBackend('bench'));
} else {
  execFileSync('ip', ['netns', 'add', NAMESPACE]);
  try {
    const self = fileURLToPath(import.meta.url);
    execFileSync('ip', ['netns', 'exec', NAMESPACE, process.execPath, self, 'inside'], { stdio: 'inherit' });
  } finally {
    execFileSync('ip', ['netns', 'delete', NAMESPACE]);
  }
}
