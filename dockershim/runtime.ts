// CRI's calls about the runtime as a whole: Version, Status, RuntimeConfig and UpdateRuntimeConfig.

import type { Handlers, Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, unsupported } from './errors.ts';
import type { SandboxNetwork } from './network.ts';
import type { DockerFacts } from './translate/facts.ts';

export interface RuntimeParts {
  readonly engine: Engine;
  readonly network: SandboxNetwork;
  readonly facts: () => Promise<DockerFacts>;
}

export const RUNTIME_NAME = 'docker';
/** From this API version on a mount can be read-only with all that is below it (Docker 25). */
const RECURSIVE_READ_ONLY_SINCE = 44;

function condition(type: string, reason: string, problem: string | undefined) {
  const message = problem ?? '';
  return { type, status: problem === undefined, reason: problem === undefined ? '' : reason, message };
}

export class Runtime {
  readonly #parts: RuntimeParts;

  constructor(parts: RuntimeParts) {
    this.#parts = parts;
  }

  get handlers(): Handlers {
    return {
      Version: () => this.#version(),
      Status: (request) => this.#status(request),
      RuntimeConfig: async () => {
        const { cgroupDriver } = await this.#parts.facts();
        return { linux: { cgroup_driver: cgroupDriver === 'systemd' ? 'SYSTEMD' : 'CGROUPFS' } };
      },
      UpdateRuntimeConfig: async ({ runtime_config }) => {
        // The kubelet sends the node's pod CIDR to runtimes that make networks of it: here a conflist has the addresses.
        const cidr = runtime_config?.network_config?.pod_cidr ?? '';
        if (cidr !== '')
          throw unsupported('runtime_config.network_config.pod_cidr', 'networks are those of the CNI configuration');
        return {};
      },
    };
  }

  async #version(): Promise<Reply<'Version'>> {
    const { version } = await this.#parts.facts();
    return { version: '0.1.0', runtime_name: RUNTIME_NAME, runtime_version: version, runtime_api_version: 'v1' };
  }

  /** Why Docker does not answer now. */
  async #dockerProblem(): Promise<string | undefined> {
    try {
      await this.#parts.engine.call('SystemPing', {}, (docker) => docker.ping());
      return undefined;
    } catch (error) {
      if (!(error instanceof CriError)) throw error;
      return error.message;
    }
  }

  async #status({ verbose }: Received<'Status'>): Promise<Reply<'Status'>> {
    const problem = await this.#dockerProblem();
    const facts = problem === undefined ? await this.#parts.facts() : undefined;
    const recursive = facts !== undefined && facts.apiMinor >= RECURSIVE_READ_ONLY_SINCE;
    const features = { recursive_read_only_mounts: recursive, user_namespaces: false };
    const handlers = facts === undefined ? [] : ['', ...facts.runtimes];
    const info =
      facts === undefined ? {} : { docker: { ...facts, runtimes: [...facts.runtimes], security: [...facts.security] } };
    return {
      status: {
        conditions: [
          condition('RuntimeReady', 'DockerDaemonNotReady', problem),
          condition('NetworkReady', 'NetworkPluginNotReady', await this.#networkProblem()),
        ],
      },
      info: verbose ? { config: JSON.stringify(info) } : {},
      runtime_handlers: handlers.map((name) => ({ name, features })),
      features: { supplemental_groups_policy: false },
    };
  }

  async #networkProblem(): Promise<string | undefined> {
    const problem = await this.#parts.network.problem();
    return problem === undefined ? undefined : `Network plugin returns error: ${problem}`;
  }
}
