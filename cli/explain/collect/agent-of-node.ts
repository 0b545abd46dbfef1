// The agent of this machine: its process, its kubeconfig with the client certificate, its own request to the API server, and its
// HTTPS server. Reads files and /proc, opens connections; changes nothing and starts nothing.

import { access as accessFile, readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import { parse } from 'yaml';
import { type ClusterAccess, loadKubeconfig } from '../../../client/kubeconfig.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node } from '../../../client/types.ts';
import { errnoOf, errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import { listProcesses, type ProcessEntry } from '../../../lib/processes.ts';
import { agentProcess, flagOf } from '../agent-process.ts';
import { certificateFact, certificatesIn } from '../certificates.ts';
import type { AgentFacts, CertificateFact, KubeletApiFact, ServerAttempt } from '../facts.ts';
import { callServer } from './api-server.ts';
import { probeIn } from './probe-in.ts';
import type { Gaps, LocalNode, Sources } from './source.ts';

/** Where kubeadm puts a kubelet's files. */
const USUAL_KUBECONFIG = '/etc/kubernetes/kubelet.conf';
const USUAL_CONFIG = '/var/lib/kubelet/config.yaml';
/** ms */
const ANSWER_MS = 5_000;

/** The process and the files of the node's agent. */
export interface AgentFiles {
  readonly process: ProcessEntry | undefined;
  readonly kubeconfig: string;
  /** Fields of its KubeletConfiguration; empty where there is none. */
  readonly config: ReadonlyMap<string, unknown>;
}

async function configurationIn(path: string | undefined): Promise<ReadonlyMap<string, unknown>> {
  if (path === undefined) return new Map();
  try {
    const document: unknown = parse(await readFile(path, 'utf8'));
    return new Map(typeof document === 'object' && document !== null ? Object.entries(document) : []);
  } catch (error) {
    // The agent does not start with a broken one and its log says why; here only a few fields matter.
    if (isErrno(error, 'ENOENT') || (error instanceof Error && error.name.startsWith('YAML'))) return new Map();
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await accessFile(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

/** Undefined, and a gap, where this machine has no agent that could be found. */
export async function findAgent(local: LocalNode, gaps: Gaps): Promise<AgentFiles | undefined> {
  const found = agentProcess(await listProcesses(), { kubeconfig: local.agentKubeconfig, nodeName: local.name });
  const argv = found?.argv ?? [];
  const usual = (await isThere(USUAL_KUBECONFIG)) ? USUAL_KUBECONFIG : undefined;
  const kubeconfig = local.agentKubeconfig ?? flagOf(argv, 'kubeconfig') ?? usual;
  if (kubeconfig === undefined) {
    gaps.add('the agent', `no process of it was found, and there is no ${USUAL_KUBECONFIG}: give --agent-kubeconfig`);
    return undefined;
  }
  const config = flagOf(argv, 'config') ?? local.agentConfig ?? USUAL_CONFIG;
  return { process: found, kubeconfig, config: await configurationIn(config) };
}

/** Reads the kubeconfig as the agent does, and makes the request that the agent makes most: for its own Node. */
export async function collectAgent(
  sources: Sources,
  gaps: Gaps,
  { process, kubeconfig }: AgentFiles,
  { name: nodeName, networkNamespace }: Pick<LocalNode, 'name' | 'networkNamespace'>,
): Promise<AgentFacts> {
  const own = {
    kubeconfig,
    process: process === undefined ? undefined : { pid: process.pid, state: process.state },
    problem: undefined,
    certificate: undefined,
    attempt: undefined,
  };
  try {
    const access = await loadKubeconfig(kubeconfig);
    const authorities = access.ca === undefined ? undefined : certificatesIn(access.ca);
    const certificate = certificateFact(kubeconfig, certificatesIn(access.clientCert ?? ''), authorities);
    const path = resourcePath('v1', 'nodes', { name: nodeName });
    const attempt = await attemptFrom(access, path, sources, gaps, networkNamespace);
    return { ...own, certificate, attempt };
  } catch (error) {
    if (error instanceof UserError) return { ...own, problem: error.message };
    // Text between the lines of a certificate that is none: OpenSSL's error.
    if (errnoOf(error)?.startsWith('ERR_OSSL') === true) return { ...own, problem: errorMessage(error) };
    throw error;
  }
}

/** The agent's request as it ends in the node's own network; undefined, and a gap, where that network is not there: the node is off. */
async function attemptFrom(
  access: ClusterAccess,
  path: string,
  { now }: Sources,
  gaps: Gaps,
  networkNamespace: string | undefined,
): Promise<ServerAttempt | undefined> {
  if (networkNamespace === undefined) return (await callServer(access, path, now)).attempt;
  const { server } = access;
  const { hostname: address, port } = new URL(server);
  const probed = await probeIn(networkNamespace, { connects: [{ address, port: Number(port) }], questions: [] });
  if (probed.failure !== undefined) {
    gaps.add('the agent’s way to the API server', probed.failure);
    return undefined;
  }
  const tried = probed.result.connects[0];
  if (tried === undefined || tried.isOpen) return (await callServer(access, path, now)).attempt;
  return { server, request: `GET ${path}`, step: 'tcp', answer: tried.answer, status: undefined };
}

/** The certificate that the agent's server shows, with any issuer. */
function shownBy(host: string, port: number, ca: string | undefined): Promise<Omit<KubeletApiFact, 'throughServer'>> {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false });
    const end = (state: KubeletApiFact['state'], answer: string, certificate?: CertificateFact): void => {
      socket.destroy();
      resolve({ address, state, answer, certificate });
    };
    socket.setTimeout(ANSWER_MS, () => end('silent', 'no answer in time'));
    socket.once('error', (error) =>
      end(isErrno(error, 'ECONNREFUSED') ? 'refused' : 'silent', errnoOf(error) ?? errorMessage(error)),
    );
    socket.once('secureConnect', () => {
      const leaf = socket.getPeerX509Certificate();
      const authorities = ca === undefined ? undefined : certificatesIn(ca);
      const chain = leaf === undefined ? [] : [leaf];
      end('serves', 'it serves', certificateFact(address, chain, authorities));
    });
  });
}

/** Undefined where the Node has no address or no port yet. */
export async function collectKubeletApi(
  { client, now }: Sources,
  { metadata, status }: Node,
): Promise<KubeletApiFact | undefined> {
  const addresses = status?.addresses ?? [];
  const host = ['InternalIP', 'ExternalIP'].flatMap(
    (type) => addresses.find((each) => each.type === type)?.address ?? [],
  )[0];
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
  if (host === undefined || port === undefined) return undefined;
  const shown = await shownBy(host, port, client.access.ca);
  const { certificate } = shown;
  const isSuspect = certificate !== undefined && !certificate.selfMade && certificate.signedByCa === false;
  if (!isSuspect) return { ...shown, throughServer: undefined };
  const path = `${resourcePath('v1', 'nodes', { name: metadata.name })}/proxy/healthz`;
  const { attempt } = await callServer(client.access, path, now);
  return { ...shown, throughServer: attempt.answer };
}

/** Why the configured serving certificate cannot be read; undefined where it can, or none is configured. */
export async function servingProblem(config: ReadonlyMap<string, unknown>): Promise<string | undefined> {
  for (const field of ['tlsCertFile', 'tlsPrivateKeyFile']) {
    const path = config.get(field);
    if (typeof path !== 'string' || path === '') continue;
    try {
      await accessFile(path);
    } catch (error) {
      return `${field} ${path}: ${isErrno(error, 'ENOENT') ? 'no such file' : errorMessage(error)}`;
    }
  }
  return undefined;
}
