// Pod sandboxes: makes their configs and the files they name, calls RunPodSandbox, StopPodSandbox and
// RemovePodSandbox, and passes the results to the cache. Decides nothing about pods.

import type { Pod } from '../../client/types.ts';
import { goQuote } from '../../lib/go-words.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { podUID } from '../model/pod-uid.ts';
import type { PodRef, SandboxId, SandboxSpec } from '../ports/runtime.ts';
import { RuntimeError } from '../ports/runtime.ts';
import { dnsWarnings, type ResolvConf } from './config/dns.ts';
import type { IdRange } from './config/namespaces.ts';
import { updatedSandboxResources } from './config/resources.ts';
import { podSandboxConfig } from './config/sandbox-config.ts';
import type { RuntimeContext } from './context.ts';
import { newSandbox, runtimeStatus, sandboxId } from './convert.ts';
import { isRuntimeError, SHORT_DEADLINE_MS } from './cri-client.ts';
import type { CriRuntimeOptions } from './options.ts';
import { preparing, preparingInTurns, unlessGone } from './prepare.ts';
import { userNamespace } from './userns.ts';

export function refOf(pod: Pod): PodRef {
  return { uid: podUID(pod.metadata.uid), namespace: pod.metadata.namespace, name: pod.metadata.name };
}

type SandboxOptions = Pick<CriRuntimeOptions, 'addressesOf' | 'onWarning'>;

export class PodSandboxes {
  readonly #context: RuntimeContext;
  readonly #options: SandboxOptions;
  /** Reasons of warnings about the node that were given once. */
  readonly #nodeWarnings = new Set<string>();

  constructor(context: RuntimeContext, options: SandboxOptions) {
    this.#context = context;
    this.#options = options;
  }

  async run(spec: SandboxSpec): Promise<SandboxId> {
    const { client, cache, clock, files, deadlineMs } = this.#context;
    const pod = refOf(spec.pod);
    const config = await this.#config(spec.pod, spec.attempt, spec.runtimeHandler);
    preparing('GeneratePodSandboxConfig', () => files.makeLogDirectory(pod));
    const createdAt = clock.now();
    return await cache.during(async ({ seqBefore }) => {
      // CNI plugins run inside this call: its deadline is twice the ordinary one, as in the kubelet.
      const response = await client
        .call(
          'RunPodSandbox',
          { config, runtime_handler: spec.runtimeHandler },
          {
            deadlineMs: deadlineMs * 2,
            attributes: {
              attempt: spec.attempt,
              ...(spec.runtimeHandler === '' ? {} : { runtimeHandler: spec.runtimeHandler }),
            },
          },
        )
        .catch((error: unknown) => {
          cache.apply({ kind: 'callFailed', call: 'RunPodSandbox', pod });
          // There may never be a sandbox whose removal would remove it.
          preparing('RunPodSandbox', () => files.removeEmptyLogDirectory(pod));
          throw error;
        });
      const id = sandboxId(response.pod_sandbox_id);
      const { sandbox, networkKnown } = newSandbox(id, spec, this.#options.addressesOf?.(id) ?? [], createdAt);
      cache.apply({ kind: 'callDone', call: 'RunPodSandbox', seqBefore, pod, sandbox, networkKnown, config });
      return id;
    });
  }

  async stop(id: string): Promise<void> {
    const { client, deadlineMs, exits } = this.#context;
    await exits.settled(id);
    await this.#context.change('StopPodSandbox', id, () =>
      unlessGone(() =>
        client.call('StopPodSandbox', { pod_sandbox_id: id }, { deadlineMs, attributes: { sandbox: id } }),
      ),
    );
  }

  async listIds(): Promise<readonly SandboxId[]> {
    const { client, deadlineMs } = this.#context;
    const { items } = await client.call('ListPodSandbox', {}, { deadlineMs });
    return items.map(({ id }) => sandboxId(id));
  }

  /** The files of the pod go with its last sandbox. */
  async remove(id: string): Promise<void> {
    const { client, cache, deadlineMs, exits, files, statuses } = this.#context;
    await exits.settled(id);
    if (cache.get(id) === undefined) await statuses.sandbox(id);
    const pod = cache.get(id)?.pod;
    const isLast =
      pod !== undefined && !cache.recordsOf(pod.uid).some((record) => record.kind === 'sandbox' && record.id !== id);
    await this.#context.change('RemovePodSandbox', id, async () => {
      await unlessGone(() =>
        client.call('RemovePodSandbox', { pod_sandbox_id: id }, { deadlineMs, attributes: { sandbox: id } }),
      );
      // Before the cache drops it: a failure here is retried with the sandbox.
      if (isLast) await preparingInTurns('RemovePodSandbox', () => files.removePod(pod));
    });
  }

  async updateResources(id: string, pod: Pod): Promise<void> {
    const { client, node, deadlineMs } = this.#context;
    const request = { pod_sandbox_id: id, ...updatedSandboxResources(pod, node) };
    try {
      await client.call('UpdatePodSandboxResources', request, { deadlineMs, attributes: { sandbox: id } });
    } catch (error) {
      // containerd serves it from 2.1 on.
      if (!isRuntimeError(error, 'UNIMPLEMENTED')) throw error;
    }
  }

  /** The sandbox config, which every CreateContainer in it needs. */
  async configOf(id: string, pod: Pod): Promise<PodSandboxConfig> {
    const { cache, statuses } = this.#context;
    const known = cache.sandbox(id)?.config;
    if (known !== undefined) return known;
    // After a restart of the agent: the pod has all but the attempt, and the runtime has its own copy of that.
    const status = await statuses.sandbox(id);
    const config = await this.#config(pod, status?.metadata?.attempt ?? 0, status?.runtime_handler ?? '');
    cache.keepConfig(id, config);
    return config;
  }

  /** The sandbox config for PullImage: that of the pod's sandbox, which it has already, with its user namespace. */
  configForPull(pod: Pod): PodSandboxConfig {
    const { cache, node, files, clock } = this.#context;
    const [newest] = cache
      .recordsOf(pod.metadata.uid)
      .filter((record) => record.kind === 'sandbox')
      .sort((a, b) => b.snapshot.attempt - a.snapshot.attempt);
    if (newest?.config !== undefined) return newest.config;
    const block = pod.spec.hostUsers === false ? userNamespace(node.rootDir, pod.metadata.uid) : undefined;
    return preparing('GeneratePodSandboxConfig', () =>
      podSandboxConfig(pod, newest?.snapshot.attempt ?? 0, {
        node,
        resolvConf: files.resolvConf(),
        userns: block,
        seenAt: clock.now(),
      }),
    );
  }

  async #config(pod: Pod, attempt: number, handler: string): Promise<PodSandboxConfig> {
    const { node, files, clock } = this.#context;
    const block = await this.#userns(pod, handler);
    return preparing('GeneratePodSandboxConfig', () => {
      const resolvConf = files.resolvConf();
      this.#warn(pod, resolvConf);
      return podSandboxConfig(pod, attempt, { node, resolvConf, userns: block, seenAt: clock.now() });
    });
  }

  async #userns(pod: Pod, handler: string): Promise<IdRange | undefined> {
    const { client, node } = this.#context;
    if (pod.spec.hostUsers !== false) return undefined;
    const { handlers } = runtimeStatus(await client.call('Status', {}, { deadlineMs: SHORT_DEADLINE_MS }));
    if (!handlers.some((known) => known.name === handler && known.userNamespaces)) {
      const who = handler === '' ? 'runtime' : `RuntimeClass handler ${goQuote(handler)}`;
      const problem = `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`;
      throw new RuntimeError('GeneratePodSandboxConfig', RuntimeError.NOT_CALLED, problem);
    }
    return userNamespace(node.rootDir, pod.metadata.uid);
  }

  /** Once per sandbox that is made; what is wrong with the node once at all. */
  #warn(pod: Pod, resolvConf: ResolvConf | undefined): void {
    const { onWarning } = this.#options;
    if (onWarning === undefined) return;
    const { clusterDNS: servers, clusterDomain: domain } = this.#context.node;
    for (const { of, reason, message } of dnsWarnings(pod, { servers, domain }, resolvConf)) {
      if (of === 'node' && this.#nodeWarnings.has(reason)) continue;
      if (of === 'node') this.#nodeWarnings.add(reason);
      onWarning(of === 'node' ? 'node' : pod, reason, message);
    }
  }
}
