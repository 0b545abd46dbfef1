// What is done inside a running container: ExecSync, the URLs of the runtime's streaming server (Exec, Attach,
// PortForward), and its log's reopening. Keeps nothing.

import type { ContainerId, ContainerRuntime, SandboxId, StreamOptions } from '../ports/runtime.ts';
import type { RuntimeContext } from './context.ts';
import { isRuntimeError, SHORT_DEADLINE_MS } from './cri-client.ts';

export class Streaming {
  readonly #context: RuntimeContext;

  constructor(context: RuntimeContext) {
    this.#context = context;
  }

  async execSync(
    id: ContainerId,
    command: readonly string[],
    timeoutMs: number,
  ): ReturnType<ContainerRuntime['execSync']> {
    // CRI counts whole seconds, and kills the process when they are over.
    const timeout = Math.ceil(timeoutMs / 1000);
    try {
      const response = await this.#context.client.call(
        'ExecSync',
        { container_id: id, cmd: [...command], timeout },
        {
          // The runtime answers first; this is for a runtime that does not.
          ...(timeoutMs === 0 ? {} : { deadlineMs: timeout * 1000 + SHORT_DEADLINE_MS }),
          attributes: { container: id, command: [...command] },
        },
      );
      return { stdout: response.stdout, stderr: response.stderr, exitCode: response.exit_code, timedOut: false };
    } catch (error) {
      if (timeoutMs === 0 || !isRuntimeError(error, 'DEADLINE_EXCEEDED')) throw error;
      return { stdout: Buffer.alloc(0), stderr: Buffer.from(error.message), exitCode: -1, timedOut: true };
    }
  }

  async execUrl(
    id: ContainerId,
    { command, ...streams }: StreamOptions & { readonly command: readonly string[] },
  ): Promise<string> {
    const { client, deadlineMs } = this.#context;
    const request = { container_id: id, cmd: [...command], ...streams };
    return (await client.call('Exec', request, { deadlineMs, attributes: { container: id } })).url;
  }

  async attachUrl(id: ContainerId, streams: StreamOptions): Promise<string> {
    const { client, deadlineMs } = this.#context;
    const request = { container_id: id, ...streams };
    return (await client.call('Attach', request, { deadlineMs, attributes: { container: id } })).url;
  }

  async portForwardUrl(id: SandboxId, ports: readonly number[]): Promise<string> {
    const { client, deadlineMs } = this.#context;
    const request = { pod_sandbox_id: id, port: [...ports] };
    return (await client.call('PortForward', request, { deadlineMs, attributes: { sandbox: id } })).url;
  }

  async reopenLog(id: ContainerId): Promise<void> {
    const { client, deadlineMs } = this.#context;
    await client.call('ReopenContainerLog', { container_id: id }, { deadlineMs, attributes: { container: id } });
  }
}
