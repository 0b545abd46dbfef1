// The lab's registry (labs/registry), or another that stands in its place: where it is, and which registries behind it can be reached.

import type { Clock } from '../../lib/clock.ts';
import { httpAnswer } from '../../lib/http-answer.ts';
import { poll } from '../../lib/retry.ts';
import { mirrorUrl } from './mirror-url.ts';
import { type MirrorPlan, reachableRegistries } from './mirrors.ts';
import type { LabOptions } from './options.ts';
import type { LabState } from './state.ts';

/** Between two tries to reach it. ms */
const LOOK_MS = 50;
const ANSWERS_MS = 20_000;

/** What of the state says where images are pulled from; `port` gives a free one. */
export async function registryState(
  { registry, registryMirror }: Pick<LabOptions, 'registry' | 'registryMirror'>,
  address: string,
  port: () => Promise<number>,
): Promise<LabState['registry']> {
  if (registryMirror !== undefined) return { url: mirrorUrl(registryMirror) };
  if (registry !== true) return undefined;
  const own = { address, port: await port() };
  return { url: `http://${own.address}:${own.port}`, own };
}

/** Looks which registries can be reached, unless the lab is to use none. Undefined where containerd has no mirror. */
export async function planMirrors(
  { registry }: Pick<LabState, 'registry'>,
  { images }: Pick<LabOptions, 'images'>,
): Promise<MirrorPlan | undefined> {
  if (registry === undefined) return undefined;
  const reachable = images === 'build' ? new Set<string>() : await reachableRegistries();
  return { mirror: registry.url, reachable };
}

/** Whether the registry answers, within some seconds; 401 is an answer. */
export function registryServes(
  url: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> {
  const look = async (): Promise<boolean> => {
    const answer = await httpAnswer(`${url}/v2/`, options.signal);
    options.signal.throwIfAborted();
    return answer !== undefined && answer.status < 500;
  };
  return poll(look, { ...options, everyMs: LOOK_MS, limitMs: ANSWERS_MS });
}
