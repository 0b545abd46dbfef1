// Images: CRI's ImageService as the port has it. Keeps nothing.

import type { Pod } from '../../client/types.ts';
import type { ImageAuth, RuntimeImage } from '../ports/runtime.ts';
import { RuntimeError } from '../ports/runtime.ts';
import type { RuntimeContext } from './context.ts';
import { runtimeImage } from './convert.ts';
import { unlessGone } from './prepare.ts';
import type { PodSandboxes } from './sandboxes.ts';
import type { CriRuntime } from './types.ts';

function authConfig(auth: ImageAuth) {
  return {
    username: auth.username ?? '',
    password: auth.password ?? '',
    auth: auth.auth ?? '',
    server_address: auth.serverAddress ?? '',
    identity_token: auth.identityToken ?? '',
    registry_token: auth.registryToken ?? '',
  };
}

export class Images {
  readonly #context: RuntimeContext;
  readonly #sandboxes: PodSandboxes;

  constructor(context: RuntimeContext, sandboxes: PodSandboxes) {
    this.#context = context;
    this.#sandboxes = sandboxes;
  }

  async status(image: string): Promise<RuntimeImage | undefined> {
    const { client, deadlineMs } = this.#context;
    const response = await client.call('ImageStatus', { image: { image } }, { deadlineMs, attributes: { image } });
    return response.image === null ? undefined : runtimeImage(response.image);
  }

  async pull(image: string, auth: ImageAuth | undefined, pod: Pod, signal?: AbortSignal): Promise<RuntimeImage> {
    const sandbox_config = this.#sandboxes.configForPull(pod);
    const response = await this.#context.client.call(
      'PullImage',
      {
        // The kubelet's notes on the pod are among its annotations.
        image: { image, annotations: sandbox_config.annotations ?? {} },
        sandbox_config,
        ...(auth === undefined ? {} : { auth: authConfig(auth) }),
      },
      // No deadline: the time of a pull depends on the image, and the runtime aborts a pull without progress.
      { ...(signal === undefined ? {} : { signal }), attributes: { image } },
    );
    const pulled = (await this.status(response.image_ref)) ?? (await this.status(image));
    if (pulled !== undefined) return pulled;
    const problem = `image "${image}" was pulled as "${response.image_ref}" and is gone`;
    throw new RuntimeError('PullImage', 'NOT_FOUND', problem);
  }

  async list(): Promise<readonly RuntimeImage[]> {
    const { client, deadlineMs } = this.#context;
    return (await client.call('ListImages', {}, { deadlineMs })).images.map(runtimeImage);
  }

  async remove(id: string): Promise<void> {
    const { client, deadlineMs } = this.#context;
    await unlessGone(() =>
      client.call('RemoveImage', { image: { image: id } }, { deadlineMs, attributes: { image: id } }),
    );
  }

  async fsInfo(): ReturnType<CriRuntime['imageFsInfo']> {
    const { client, deadlineMs } = this.#context;
    const response = await client.call('ImageFsInfo', {}, { deadlineMs });
    return response.image_filesystems.map((usage) => ({
      mountpoint: usage.fs_id?.mountpoint ?? '',
      usedBytes: Number(usage.used_bytes?.value ?? 0),
      inodesUsed: Number(usage.inodes_used?.value ?? 0),
    }));
  }
}
