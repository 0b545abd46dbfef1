// Whether a webhook's match conditions hold for a request (k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions).

import { aggregate } from '../../../lib/aggregate.ts';
import { CelBudget, CelEvaluationError, celValue, evaluate } from '../../cel/cel.ts';
import type { Webhook } from '../../kinds/webhooks.ts';
import { isObject } from '../../patch/json-value.ts';
import { type AdmissionAttributes, AdmissionForbidden } from '../plugin.ts';
import { authorizerOf } from '../policies/authorizer.ts';
import { conditionProgram } from './condition-programs.ts';
import { admissionReview } from './review.ts';

/** One for all conditions of a request: together they must not hold up other requests. */
const budgets = new WeakMap<AdmissionAttributes, CelBudget>();

function budgetOf(attributes: AdmissionAttributes): CelBudget {
  const request = attributes.request ?? attributes;
  const budget = budgets.get(request) ?? new CelBudget();
  budgets.set(request, budget);
  return budget;
}

function variablesOf(attributes: AdmissionAttributes): Record<string, unknown> {
  const { request } = admissionReview('v1', attributes.requestId, attributes);
  const { object, oldObject, ...rest } = isObject(request) ? request : {};
  return {
    object: celValue(object ?? null),
    oldObject: celValue(oldObject ?? null),
    request: celValue(rest),
    // As upstream: declared, and not there.
    namespaceObject: null,
    authorizer: authorizerOf(attributes),
  };
}

/**
 * False as soon as one condition is false. Where one cannot be evaluated and none is false, the failure policy decides:
 * the webhook is not called, or AdmissionForbidden is thrown.
 */
export function conditionsHold(
  { matchConditions = [], failurePolicy }: Webhook,
  attributes: AdmissionAttributes,
): boolean {
  if (matchConditions.length === 0) return true;
  const variables = variablesOf(attributes);
  const budget = budgetOf(attributes);
  const errors: string[] = [];
  for (const { expression = '' } of matchConditions) {
    try {
      if (evaluate(conditionProgram(expression), variables, budget) === false) return false;
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      errors.push(`expression '${expression}' resulted in error: ${error.message}`);
    }
  }
  if (errors.length === 0) return true;
  if (failurePolicy === 'Ignore') return false;
  throw new AdmissionForbidden(aggregate(errors));
}
