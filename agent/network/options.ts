// What the agent's network is made from, and what it offers beyond the PodNetwork port. Types only.

import type { CniResult } from '../../cni/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Exec } from '../../lib/exec.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { PodNetwork } from '../ports/node.ts';
import type { RuntimeStatus, SandboxId } from '../ports/runtime.ts';

export interface AgentNetworkOptions {
  /** Where the conflist of the chain that the agent runs is; watched, never polled. */
  readonly confDir: string;
  /** Where its plugins are, first match wins. */
  readonly binDirs: readonly string[];
  /** The directory of the attachment cache. */
  readonly cacheDir: string;
  /** The unix socket that the shim connects to; made with mode 0600. */
  readonly socketPath: string;
  /**
   * Where to install the shim for the container runtime: executable into `binDir`, conflist into `confDir`; `node` is
   * the path of the Node that runs it, Perl by default. Left out, it is installed by other means.
   */
  readonly shim?: { readonly confDir: string; readonly binDir: string; readonly node?: string };
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** Called when `status()` may have changed: the conflist was written, replaced or removed. */
  readonly onStatusChange?: () => void;
  /** A plugin that takes longer is killed, in ms. Default 120 000. */
  readonly pluginTimeoutMs?: number;
  /** Runs plugins; replaced in tests. */
  readonly exec?: Exec;
  /** Where non-fatal errors are reported (a failed collection, a lost netlink socket). */
  readonly onError: (what: string, error: unknown) => void;
}

export interface AgentNetwork extends PodNetwork {
  /**
   * Opens the socket, installs the shim, starts watching. Rejects when the socket cannot be made. `listSandboxes` returns
   * every sandbox that the runtime has, for the garbage collection, on the start and periodically; left out, there is none.
   */
  start(listSandboxes?: () => Promise<readonly SandboxId[]>): Promise<void>;
  /** Stops serving and watching and removes the socket; attachments stay as they are. Idempotent. */
  close(): Promise<void>;
  /** The result of the attachment that is in force, when there is one. */
  result(sandboxId: SandboxId): Promise<CniResult | undefined>;
}

export interface RuntimeNetworkOptions {
  readonly runtime: { status(): Promise<Pick<RuntimeStatus, 'networkReady'>> };
}
