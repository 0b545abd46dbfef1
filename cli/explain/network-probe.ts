// Connections and DNS questions, from the network namespace in which this runs. Opens and closes; sends nothing over TCP. The
// program network-probe-program.ts runs it in the namespace of a pod.

import { Resolver } from 'node:dns/promises';
import { connect } from 'node:net';
import { errnoOf, errorMessage } from '../../lib/errors.ts';
import type { ConnectFact, DnsAnswer } from './facts.ts';

/** ms. The kernel repeats a lost SYN after a second: less would take a slow moment for a closed way. */
const CONNECT_MS = 3_000;
/** Of each try. ms */
const DNS_MS = 2_500;
const DNS_TRIES = 2;

export interface DnsQuestion {
  /** "10.96.0.10:53", "[fd00::a]:53" */
  readonly server: string;
  readonly name: string;
  readonly family: 4 | 6;
}

export interface ProbeRequest {
  readonly connects: readonly { readonly address: string; readonly port: number }[];
  readonly questions: readonly DnsQuestion[];
}

export interface ProbeResult {
  readonly connects: readonly ConnectFact[];
  readonly answers: readonly DnsAnswer[];
}

function connectTo(address: string, port: number): Promise<ConnectFact> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (isOpen: boolean, answer: string): void => {
      socket.destroy();
      resolve({ address, port, isOpen, answer });
    };
    socket.setTimeout(CONNECT_MS, () => end(false, `no answer within ${CONNECT_MS / 1000} s`));
    socket.once('connect', () => end(true, 'connected'));
    socket.once('error', (error) => end(false, errnoOf(error) ?? errorMessage(error)));
  });
}

async function resolveAt({ server, name, family }: DnsQuestion): Promise<DnsAnswer> {
  try {
    const resolver = new Resolver({ timeout: DNS_MS, tries: DNS_TRIES });
    resolver.setServers([server]);
    const addresses = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name));
    return { server, name, addresses, error: undefined };
  } catch (error) {
    const code = errnoOf(error);
    if (code === undefined) throw error;
    return { server, name, addresses: [], error: code };
  }
}

export async function probeNetwork({ connects, questions }: ProbeRequest): Promise<ProbeResult> {
  const [opened, answers] = await Promise.all([
    Promise.all(connects.map(({ address, port }) => connectTo(address, port))),
    Promise.all(questions.map(resolveAt)),
  ]);
  return { connects: opened, answers };
}
