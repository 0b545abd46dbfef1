// The network of sandboxes: what containerd's CRI part does with CNI. The result cache of cni/ says which sandboxes are
// attached, and outlives the shim. Never chooses a network.

import type { CachedAttachment } from '../cni/cache.ts';
import { ConflistError, loadNetwork } from '../cni/conflist.ts';
import { parseResult } from '../cni/result.ts';
import { CniRuntime, type CniRuntimeOptions } from '../cni/runtime.ts';
import {
  type Attachment,
  type CapabilityArgs,
  CniError,
  type CniResult,
  type NetworkConfigList,
} from '../cni/types.ts';
import { errorMessage } from '../lib/errors.ts';
import { parseQuantity } from '../lib/quantity.ts';
import type { DNSConfig__Output } from '../proto/gen/runtime/v1/DNSConfig.ts';
import type { PortMapping__Output } from '../proto/gen/runtime/v1/PortMapping.ts';
import { CriError } from './errors.ts';
import type { SandboxRecord } from './records.ts';

const IF_NAME = 'eth0';
const NOT_INITIALIZED = 'cni plugin not initialized';
const NANO = 1_000_000_000n;
/** containerd's burst of the bandwidth plugin: the largest that it takes. */
const MAX_BURST = 2 ** 32 - 1;

function mappings(ports: readonly PortMapping__Output[]): readonly object[] {
  return ports
    .filter(({ host_port }) => host_port > 0)
    .map(({ host_port, container_port, protocol, host_ip }) => ({
      hostPort: host_port,
      containerPort: container_port,
      protocol: protocol.toLowerCase(),
      ...(host_ip === '' ? {} : { hostIP: host_ip }),
    }));
}

/** The annotations of the bandwidth plugin: bits a second, as quantities. */
function bandwidth(annotations: Readonly<Record<string, string>>): object | undefined {
  const rate = (text: string | undefined): number | undefined => {
    const nano = text === undefined ? undefined : parseQuantity(text);
    return nano === undefined ? undefined : Number(nano / NANO);
  };
  const ingress = rate(annotations['kubernetes.io/ingress-bandwidth']);
  const egress = rate(annotations['kubernetes.io/egress-bandwidth']);
  if (ingress === undefined && egress === undefined) return undefined;
  return {
    ...(ingress === undefined ? {} : { ingressRate: ingress, ingressBurst: MAX_BURST }),
    ...(egress === undefined ? {} : { egressRate: egress, egressBurst: MAX_BURST }),
  };
}

type Network = Pick<SandboxRecord, 'annotations' | 'portMappings'>;

/** The arguments of plugins that declare the capability. Pure. */
export function capabilityArgs(sandbox: Network, dns: DNSConfig__Output | null): CapabilityArgs {
  const ports = mappings(sandbox.portMappings);
  const rates = bandwidth(sandbox.annotations);
  return {
    ...(ports.length === 0 ? {} : { portMappings: ports }),
    ...(rates === undefined ? {} : { bandwidth: rates }),
    ...(dns === null || dns.servers.length + dns.searches.length + dns.options.length === 0
      ? {}
      : { dns: { servers: dns.servers, searches: dns.searches, options: dns.options } }),
    'io.kubernetes.cri.pod-annotations': sandbox.annotations,
  };
}

/** CNI_ARGS, with containerd's names. Pure. */
export function cniArgs(id: string, { name, namespace, uid }: SandboxRecord['metadata']): string {
  return [
    'IgnoreUnknown=1',
    `K8S_POD_NAMESPACE=${namespace}`,
    `K8S_POD_NAME=${name}`,
    `K8S_POD_INFRA_CONTAINER_ID=${id}`,
    `K8S_POD_UID=${uid}`,
  ].join(';');
}

/** The addresses of the pod's interface, in the result's order, without prefix lengths. Pure. */
export function addressesOf(result: CniResult): readonly string[] {
  return result.ips
    .filter((ip) => ip.interface === undefined || result.interfaces[ip.interface]?.name === IF_NAME)
    .map(({ address }) => address.replace(/\/\d+$/, ''));
}

function addressesOfEntry(entry: CachedAttachment | undefined): readonly string[] | undefined {
  if (entry?.state !== 'added' || entry.result === undefined) return undefined;
  return addressesOf(parseResult(entry.result, entry.list.cniVersion, 'cached result'));
}

export interface NetworkOptions extends CniRuntimeOptions {
  readonly confDir: string;
}

export class SandboxNetwork {
  readonly #cni: CniRuntime;
  readonly #confDir: string;

  constructor(options: NetworkOptions) {
    this.#cni = new CniRuntime(options);
    this.#confDir = options.confDir;
  }

  /** Sandboxes whose network was set up to the end. */
  attached(): ReadonlySet<string> {
    const { entries } = this.#cni.allAttachments();
    return new Set(entries.filter(({ state }) => state === 'added').map(({ containerId }) => containerId));
  }

  /** Undefined for a sandbox that is not attached. */
  addresses(id: string): readonly string[] | undefined {
    return addressesOfEntry(this.#cni.attachments(id).find(({ ifName }) => ifName === IF_NAME));
  }

  /** Rejects with CriError, in containerd's words. */
  async attach(id: string, netns: string, sandbox: SandboxRecord, dns: DNSConfig__Output | null): Promise<void> {
    const list = await this.#network();
    const words = `failed to setup network for sandbox "${id}"`;
    if (list === undefined) throw new CriError('UNKNOWN', `${words}: ${NOT_INITIALIZED}`);
    try {
      await this.#cni.add(list, {
        ...this.#attachment(id, netns, sandbox),
        capabilityArgs: capabilityArgs(sandbox, dns),
      });
    } catch (error) {
      if (!(error instanceof CniError)) throw error;
      throw new CriError('UNKNOWN', `${words}: ${error.message}`, { cause: error });
    }
  }

  /** `netns`: '' when it is gone. What was never attached is detached. Rejects with CriError. */
  async detach(id: string, netns: string, sandbox: SandboxRecord): Promise<void> {
    try {
      await this.#cni.del({ ...this.#attachment(id, netns, sandbox), capabilityArgs: {} });
    } catch (error) {
      if (!(error instanceof CniError)) throw error;
      const message = `failed to destroy network for sandbox "${id}": ${error.message}`;
      throw new CriError('UNKNOWN', message, { cause: error });
    }
  }

  #attachment(id: string, netns: string, sandbox: SandboxRecord): Omit<Attachment, 'capabilityArgs'> {
    return { containerId: id, netns, ifName: IF_NAME, args: cniArgs(id, sandbox.metadata) };
  }

  async #network(): Promise<NetworkConfigList | undefined> {
    try {
      return (await loadNetwork(this.#confDir))?.list;
    } catch (error) {
      if (!(error instanceof ConflistError)) throw error;
      throw new CriError('UNKNOWN', `${NOT_INITIALIZED}: ${error.message}`, { cause: error });
    }
  }

  /** Undoes the attachments of sandboxes that Docker has no more: made between a start and the shim's end. */
  async collectGarbage(sandboxes: ReadonlySet<string>): Promise<readonly Error[]> {
    const inUse = (containerId: string): boolean => sandboxes.has(containerId);
    const report = await this.#cni.collectGarbage(undefined, async () => true, { inUse });
    return report.failures;
  }

  /** Why sandboxes get no network; undefined while they do. */
  async problem(): Promise<string | undefined> {
    try {
      const list = await this.#network();
      if (list === undefined) return `${NOT_INITIALIZED}: no network config found in ${this.#confDir}`;
      await this.#cni.status(list);
      return undefined;
    } catch (error) {
      if (!(error instanceof CniError) && !(error instanceof CriError)) throw error;
      return errorMessage(error);
    }
  }
}
