// The pods' network: CNI run by this agent, or left to the runtime's own configuration (--network=runtime). Part of the
// composition: it decides nothing.

import { join } from 'node:path';
import { errorMessage } from '../../lib/errors.ts';
import { createAgentNetwork } from '../network/agent-network.ts';
import { createRuntimeNetwork } from '../network/runtime-network.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { ContainerRuntime, SandboxId } from '../ports/runtime.ts';
import type { CriRuntime } from '../runtime/types.ts';
import type { AgentBase } from './base.ts';

export interface Network {
  /** As PodNetwork.addresses: the runtime adapter calls it before there is a port. */
  addresses(sandbox: SandboxId): readonly string[] | undefined;
  /** The PodNetwork port over this runtime. */
  port(runtime: ContainerRuntime): PodNetwork;
  start(runtime: CriRuntime): Promise<void>;
  close(): Promise<void>;
}

export function createNetwork(base: AgentBase): Network {
  const { options, clock, tracer, log, exec, signals, tricks } = base;
  if (options.network === 'runtime') {
    return {
      addresses: () => undefined,
      port: (runtime) => createRuntimeNetwork({ runtime }),
      start: async () => undefined,
      close: async () => undefined,
    };
  }
  const { cni } = options;
  const network = createAgentNetwork({
    confDir: cni.confDir,
    binDirs: cni.binDirs,
    cacheDir: cni.cacheDir,
    socketPath: join(options.socketDir, 'cni.sock'),
    shim: {
      confDir: join(cni.shimDir, 'net.d'),
      binDir: join(cni.shimDir, 'bin'),
      ...(tricks.has('perl-shim') ? {} : { node: process.execPath }),
    },
    tracer,
    clock,
    exec,
    onStatusChange: () => signals.networkChanged.emit(),
    onError: (what, error) => log('warn', `${what}: ${errorMessage(error)}`),
  });
  return {
    addresses: (sandbox) => network.addresses(sandbox),
    port: () => network,
    start: (runtime) => network.start(() => runtime.listSandboxIds()),
    close: () => network.close(),
  };
}
