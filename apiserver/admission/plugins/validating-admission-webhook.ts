// ValidatingAdmissionWebhook: every webhook that a request concerns may refuse it; they are called at the same time
// (k8s.io/apiserver/pkg/admission/plugin/webhook/validating).

import type { ObjectLookup } from '../../kinds/resource.ts';
import type { AdmissionAttributes, RemotePlugin } from '../plugin.ts';
import { callWebhook, settleFailure } from '../webhooks/call.ts';
import type { WebhookClient } from '../webhooks/client.ts';
import { type ConfiguredWebhook, concerns, configuredWebhooks, isExempt } from '../webhooks/match.ts';

const FAILED_OPEN = 'failed-open.validating.webhook.admission.k8s.io/';

async function callAll(
  hooks: readonly { readonly configured: ConfiguredWebhook; readonly seen: AdmissionAttributes }[],
  attributes: AdmissionAttributes,
  client: WebhookClient,
  lookup: ObjectLookup,
): Promise<boolean> {
  const calls = hooks.map(async ({ configured, seen }, index) => {
    try {
      await callWebhook(configured, 'validating', seen, client, lookup);
    } catch (error) {
      const { name = '' } = configured.hook;
      settleFailure(error, configured, () => attributes.annotate(`${FAILED_OPEN}round_0_index_${index}`, name));
    }
  });
  const results = await Promise.allSettled(calls);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  return false;
}

export function validatingAdmissionWebhook(client: WebhookClient): RemotePlugin {
  return {
    name: 'ValidatingAdmissionWebhook',
    phase: 'validating',
    plan: (attributes, lookup) => {
      const all = configuredWebhooks('validatingwebhookconfigurations', lookup);
      if (all.length === 0 || isExempt(attributes)) return undefined;
      const hooks = all.flatMap((configured) => {
        const seen = concerns(configured, attributes, lookup);
        return seen === undefined ? [] : [{ configured, seen }];
      });
      return hooks.length === 0 ? undefined : () => callAll(hooks, attributes, client, lookup);
    },
  };
}
