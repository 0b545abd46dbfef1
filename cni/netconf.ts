// What a plugin gets on standard input: its own configuration with what the runtime adds and takes away
// (specification, "Deriving execution configuration from plugin configuration"). Pure.

import { getOwn } from '../lib/own-property.ts';
import type { CapabilityArgs, JsonObject, NetworkConfigList, PluginConfig } from './types.ts';
import { CniError, CniErrorCode } from './types.ts';

/** Capability arguments that this plugin declares; undefined when there are none. */
export function runtimeConfigOf(plugin: PluginConfig, args: CapabilityArgs): JsonObject | undefined {
  const wanted = Object.entries(args).filter(
    ([name, value]) => getOwn(plugin.capabilities, name) === true && value !== undefined && value !== null,
  );
  return wanted.length === 0 ? undefined : Object.fromEntries(wanted);
}

/** The execution configuration of one plugin of the chain. `inject` are further keys, by their specified names. */
export function pluginNetconf(
  list: Pick<NetworkConfigList, 'name' | 'cniVersion'>,
  plugin: PluginConfig,
  inject: { readonly capabilityArgs?: CapabilityArgs; readonly prevResult?: JsonObject | undefined } & JsonObject,
): JsonObject {
  const { capabilityArgs, prevResult, ...rest } = inject;
  const { capabilities: _declared, runtimeConfig: _written, prevResult: _stale, ...own } = plugin;
  const runtimeConfig = runtimeConfigOf(plugin, capabilityArgs ?? {});
  return {
    ...own,
    ...rest,
    name: list.name,
    cniVersion: list.cniVersion,
    ...(runtimeConfig === undefined ? {} : { runtimeConfig }),
    ...(prevResult === undefined ? {} : { prevResult }),
  };
}

const CONTAINER_ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** IFNAMSIZ without its NUL. */
const MAX_INTERFACE_NAME = 15;

/** Throws CniError with code 4 for an attachment that the specification forbids. */
export function validateAttachment(attachment: { readonly containerId: string; readonly ifName: string }): void {
  const { containerId, ifName } = attachment;
  const refuse = (msg: string): never => {
    throw new CniError({ code: CniErrorCode.invalidEnvironment, msg });
  };
  if (containerId === '') refuse('CNI_CONTAINERID is missing');
  if (!CONTAINER_ID.test(containerId)) refuse(`CNI_CONTAINERID "${containerId}" has characters that are not allowed`);
  if (ifName === '') refuse('CNI_IFNAME is missing');
  if (ifName.length > MAX_INTERFACE_NAME) refuse(`CNI_IFNAME "${ifName}" is longer than ${MAX_INTERFACE_NAME} bytes`);
  if (ifName === '.' || ifName === '..') refuse('CNI_IFNAME is . or ..');
  if (/[/:\s]/.test(ifName)) refuse(`CNI_IFNAME "${ifName}" has a slash, a colon or a space in it`);
}
