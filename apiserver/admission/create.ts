// The admission of a server: the chosen plugins over cached lookups of its objects, and what they need kept.

import { apiVersionOf, type Registry } from '../registry/registry.ts';
import { CachedLookup } from './cached-lookup.ts';
import { AdmissionChain } from './chain.ts';
import { readConfigurations } from './configuration.ts';
import type { AdmissionDurations } from './durations.ts';
import { QuotaLedger } from './quota/ledger.ts';
import { chosenPlugins, createPlugins, type PluginChoice, type PluginParts } from './table.ts';
import { WebhookClient } from './webhooks/client.ts';

type Parts = Omit<PluginParts, 'quotas' | 'authorizer' | 'webhooks' | 'findKind' | 'configurations'> & {
  readonly log: (line: string) => void;
  readonly durations?: AdmissionDurations;
};

/** What a registry makes its admission with. Throws UserError for a choice that cannot be had. */
export function admissionOf(choice: PluginChoice, parts: Parts): (registry: Registry) => AdmissionChain {
  const chosen = chosenPlugins(choice);
  const configurations = readConfigurations(choice.configFile);
  return (registry) => {
    const quotas = new QuotaLedger(registry, parts.log);
    if (chosen.some(({ name }) => name === 'ResourceQuota')) quotas.start();
    return new AdmissionChain(
      createPlugins(choice, {
        ...parts,
        configurations,
        quotas,
        authorizer: () => registry.authorizer,
        webhooks: new WebhookClient(registry.clock),
        findKind: (apiVersion, kind) =>
          registry.rows.all.find((row) => row.kind === kind && apiVersionOf(row) === apiVersion),
      }),
      new CachedLookup(registry),
      parts.durations,
    );
  };
}
