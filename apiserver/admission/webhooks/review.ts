// The AdmissionReview that a webhook gets, and what its answer says (admission.k8s.io/v1 and v1beta1,
// k8s.io/apiserver/pkg/admission/plugin/webhook/request). Pure.

import { badRequest, StatusError } from '../../errors.ts';
import type { Webhook } from '../../kinds/webhooks.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { AdmissionAttributes } from '../plugin.ts';

const VERSIONS = ['v1', 'v1beta1'];

/** A webhook could not be called, or answered nonsense: what its failurePolicy is about. */
export class CallFailure extends Error {
  override name = 'CallFailure';
}

export interface WebhookAnswer {
  /** Operations of a JSON patch. */
  readonly patch: readonly unknown[];
  readonly warnings: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
  /** Set where the webhook refuses. */
  readonly refusal: StatusError | undefined;
}

/** The first version that both know. */
export function reviewVersion(hook: Webhook): string {
  return (hook.admissionReviewVersions ?? []).find((version) => VERSIONS.includes(version)) ?? 'v1';
}

export function admissionReview(version: string, uid: string, attributes: AdmissionAttributes): JsonObject {
  const { resource, kind, operation, user, object, old, dryRun, options, name } = attributes;
  const gvr = { group: resource.group, version: resource.version, resource: resource.plural };
  const request = attributes.request ?? attributes;
  const { group, version: served, plural } = request.resource;
  const isNamespace = resource.group === '' && resource.plural === 'namespaces';
  const namespace = isNamespace ? name : attributes.namespace;
  const { subresource } = resource;
  return {
    kind: 'AdmissionReview',
    apiVersion: `admission.k8s.io/${version}`,
    request: {
      uid,
      kind,
      resource: gvr,
      ...(subresource === '' ? {} : { subResource: subresource }),
      requestKind: request.kind,
      requestResource: { group, version: served, resource: plural },
      ...(subresource === '' ? {} : { requestSubResource: subresource }),
      ...(name === '' ? {} : { name }),
      ...(namespace === '' ? {} : { namespace }),
      operation,
      userInfo: {
        username: user.name,
        ...(user.uid === undefined ? {} : { uid: user.uid }),
        groups: user.groups,
        ...(user.extra === undefined ? {} : { extra: user.extra }),
      },
      object: object ?? null,
      oldObject: old ?? null,
      dryRun,
      options: Object.keys(options).length === 0 ? null : options,
    },
  };
}

const invalidAnswer = (why: string): CallFailure => new CallFailure(`received invalid webhook response: ${why}`);

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Reads an answer. Throws CallFailure for one that is no answer to the review. */
export function readAnswer(
  body: unknown,
  version: string,
  uid: string,
  phase: 'mutating' | 'validating',
  hookName: string,
): WebhookAnswer {
  const review = isObject(body) ? body : {};
  const { response } = review;
  if (!isObject(response)) throw invalidAnswer('webhook response was absent');
  if (version === 'v1') {
    if (response['uid'] !== uid) {
      throw invalidAnswer(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response['uid'] ?? '')}`);
    }
    if (review['apiVersion'] !== 'admission.k8s.io/v1' || review['kind'] !== 'AdmissionReview') {
      const got = `${String(review['apiVersion'] ?? '')}, Kind=${String(review['kind'] ?? '')}`;
      throw invalidAnswer(`expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${got}`);
    }
  }
  const annotations = isObject(response['auditAnnotations']) ? response['auditAnnotations'] : {};
  return {
    patch: readPatch(response, version, phase),
    warnings: strings(response['warnings']),
    auditAnnotations: Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)])),
    refusal: response['allowed'] === true ? undefined : refusal(hookName, response['status']),
  };
}

function readPatch({ patch, patchType }: JsonObject, version: string, phase: 'mutating' | 'validating'): unknown[] {
  const has = typeof patch === 'string' && patch !== '';
  if (phase === 'validating') {
    if (version !== 'v1') return [];
    if (has) throw invalidAnswer('validating webhook may not return response.patch');
    if (patchType !== undefined && patchType !== null) {
      throw invalidAnswer('validating webhook may not return response.patchType');
    }
    return [];
  }
  const typed = patchType !== undefined && patchType !== null;
  if (version === 'v1') {
    if (has && !typed) throw invalidAnswer('webhook returned response.patch but not response.patchType');
    if (!has && typed) throw invalidAnswer('webhook returned response.patchType but not response.patch');
    if (patchType === '') throw invalidAnswer('webhook returned invalid response.patchType of ""');
  }
  if (!has) return [];
  if (version === 'v1' && patchType !== 'JSONPatch') {
    throw new CallFailure(`unsupported patch type ${JSON.stringify(patchType)}`);
  }
  try {
    const operations: unknown = JSON.parse(Buffer.from(patch, 'base64').toString('utf8'));
    if (!Array.isArray(operations)) throw new SyntaxError('it is not a list');
    return operations;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new CallFailure(`received undecodable patch in webhook response: ${error.message}`);
  }
}

/** The webhook's own status, with at least what a refusal needs. */
function refusal(hookName: string, sent: unknown): StatusError {
  const status = isObject(sent) ? sent : {};
  const text = (field: 'message' | 'reason'): string => {
    const value = status[field];
    return typeof value === 'string' ? value : '';
  };
  const denied = `admission webhook ${JSON.stringify(hookName)} denied the request`;
  const why = text('message') || text('reason');
  const code = typeof status['code'] === 'number' && status['code'] >= 400 ? status['code'] : 400;
  const details = isObject(status['details']) ? { details: status['details'] } : {};
  return new StatusError(code, text('reason'), why === '' ? `${denied} without explanation` : `${denied}: ${why}`, {
    ...details.details,
  });
}

/** Throws 400 where a dry run would have an effect. */
export function checkDryRun({ sideEffects, name = '' }: Webhook, dryRun: boolean): void {
  if (dryRun && sideEffects !== 'None' && sideEffects !== 'NoneOnDryRun') {
    throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
  }
}
