// The admission of a server: the chosen plugins over cached lookups of its objects.

import type { Registry } from '../registry/registry.ts';
import { CachedLookup } from './cached-lookup.ts';
import { AdmissionChain } from './chain.ts';
import { createPlugins, type PluginChoice, type PluginParts } from './table.ts';

/** What a registry makes its admission with. Throws UserError for a choice that cannot be had. */
export function admissionOf(choice: PluginChoice, parts: PluginParts): (registry: Registry) => AdmissionChain {
  const plugins = createPlugins(choice, parts);
  return (registry) => new AdmissionChain(plugins, new CachedLookup(registry));
}
