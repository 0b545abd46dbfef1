// One call of one webhook for one request, up to its warnings and audit annotations; what a failure to call means.

import { randomUUID } from 'node:crypto';
import { internalError, StatusError } from '../../errors.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { WebhookClient } from './client.ts';
import type { ConfiguredWebhook } from './match.ts';
import { admissionReview, CallFailure, checkDryRun, readAnswer, reviewVersion } from './review.ts';

/** The operations of the webhook's patch. Throws its refusal, or CallFailure. */
export async function callWebhook(
  { hook }: ConfiguredWebhook,
  phase: 'mutating' | 'validating',
  attributes: AdmissionAttributes,
  client: WebhookClient,
  lookup: ObjectLookup,
): Promise<readonly unknown[]> {
  const { name = '' } = hook;
  checkDryRun(hook, attributes.dryRun);
  const version = reviewVersion(hook);
  const uid = randomUUID();
  const review = admissionReview(version, uid, attributes);
  const body = await client.call(hook, review, lookup).catch((error: unknown) => {
    throw error instanceof CallFailure ? new CallFailure(`failed to call webhook: ${error.message}`) : error;
  });
  const { patch, warnings, auditAnnotations, refusal } = readAnswer(body, version, uid, phase, name);
  for (const [key, value] of Object.entries(auditAnnotations)) attributes.annotate(`${name}/${key}`, value);
  for (const warning of warnings) attributes.warn(warning);
  if (refusal !== undefined) throw refusal;
  return patch;
}

/** Throws what the request fails with; returns where the webhook's failurePolicy lets it pass. */
export function settleFailure(error: unknown, { hook }: ConfiguredWebhook, passed: () => void): void {
  if (error instanceof StatusError || !(error instanceof CallFailure)) throw error;
  if (hook.failurePolicy === 'Ignore') {
    passed();
    return;
  }
  throw internalError(`failed calling webhook ${JSON.stringify(hook.name ?? '')}: ${error.message}`);
}
