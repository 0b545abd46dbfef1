// The configuration files of runp, create and run: YAML or JSON with CRI's own field names. What they must have is
// checked here; a field that CRI does not have is warned of by name.

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isErrno, UserError } from '../../lib/errors.ts';
import { yaml } from '../../lib/yaml.ts';
import type { ContainerConfig } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { Console } from './console.ts';
import { ConfigTypeError, type FromConfig, messageFromConfig } from './protojson.ts';

/** Throws UserError for what is no such message. Pure. */
function parseMessage(name: string, text: string): FromConfig {
  const { parse, YAMLParseError } = yaml();
  try {
    // JSON is YAML; 64-bit numbers keep their digits as bigint.
    return messageFromConfig(name, parse(text, { intAsBigInt: true }));
  } catch (error) {
    if (error instanceof YAMLParseError || error instanceof ConfigTypeError) throw new UserError(error.message);
    throw error;
  }
}

export interface ParsedConfig<T> {
  readonly config: T;
  readonly warnings: readonly string[];
}

const unknownFields = (name: string, unknown: readonly string[]): string[] =>
  unknown.map((path) => `${name} has no field "${path}": it is ignored (names are as in the CRI's .proto file)`);

/** `uid`: for a pod without one. Throws UserError. Pure. */
export function parseSandboxConfig(text: string, uid: string): ParsedConfig<PodSandboxConfig> {
  const { message, unknown } = parseMessage('PodSandboxConfig', text);
  // The fields were checked against the message's descriptor.
  const config = message as PodSandboxConfig;
  const { metadata, linux } = config;
  if (metadata === undefined || metadata === null) throw new UserError('metadata is not set');
  if (!metadata.name || !metadata.namespace) {
    throw new UserError(`name or namespace is not in metadata ${JSON.stringify(metadata)}`);
  }
  const warnings = unknownFields('PodSandboxConfig', unknown);
  if (linux && !linux.cgroup_parent) {
    warnings.push('cgroup_parent is not set. Use `runtime-config` to get the runtime cgroup driver');
  }
  return { config: { ...config, metadata: { ...metadata, uid: metadata.uid || uid } }, warnings };
}

/** Throws UserError. Pure. */
export function parseContainerConfig(text: string): ParsedConfig<ContainerConfig> & { readonly image: string } {
  const { message, unknown } = parseMessage('ContainerConfig', text);
  const config = message as ContainerConfig;
  const { metadata, image } = config;
  if (metadata === undefined || metadata === null) throw new UserError('metadata is not set');
  if (!metadata.name) throw new UserError(`name is not in metadata ${JSON.stringify(metadata)}`);
  if (image === undefined || image === null) throw new UserError('image is not set');
  if (!image.image) throw new UserError(`image field is not set in image ${JSON.stringify(image)}`);
  const specified = { ...image, user_specified_image: image.user_specified_image || image.image };
  return {
    config: { ...config, image: specified },
    image: image.image,
    warnings: unknownFields('ContainerConfig', unknown),
  };
}

async function readConfig(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) throw new UserError(`config at ${path} not found`);
    if (isErrno(error, 'EACCES', 'EISDIR', 'ENOTDIR'))
      throw new UserError(`config at ${path} cannot be read: ${error}`);
    throw error;
  }
}

export async function loadSandboxConfig(path: string, console: Console): Promise<PodSandboxConfig> {
  try {
    const { config, warnings } = parseSandboxConfig(await readConfig(path), randomUUID());
    for (const warning of warnings) console.log('WARN', warning);
    return config;
  } catch (error) {
    if (error instanceof UserError) throw new UserError(`load podSandboxConfig: ${error.message}`, { cause: error });
    throw error;
  }
}

export async function loadContainerConfig(
  path: string,
  console: Console,
): Promise<{ readonly config: ContainerConfig; readonly image: string }> {
  const { config, image, warnings } = parseContainerConfig(await readConfig(path));
  for (const warning of warnings) console.log('WARN', warning);
  return { config, image };
}
