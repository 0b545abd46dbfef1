// Rules for meta/v1 conditions in the status of an object.

import { addErrors, duplicate, invalid, notSupported, required, syntax, tooLong } from '../field-errors.ts';
import { conditionReason, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';

export interface Condition {
  type?: string | undefined;
  status?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  lastTransitionTime?: string | undefined;
  observedGeneration?: number | undefined;
}

const STATUSES = ['False', 'True', 'Unknown'];
const MAX_REASON = 1024;
const MAX_MESSAGE = 32 * 1024;

export function validateConditions(field: string, conditions: readonly Condition[] = []): FieldError[] {
  const seen = new Set<string>();
  return conditions.flatMap((condition, index) => {
    const { type = '' } = condition;
    const errors = seen.has(type) ? [duplicate(`${field}[${index}].type`, type)] : [];
    seen.add(type);
    return errors.concat(validateCondition(`${field}[${index}]`, condition));
  });
}

function validateCondition(at: string, condition: Condition): FieldError[] {
  const { type = '', status = '', reason = '', message = '', lastTransitionTime, observedGeneration = 0 } = condition;
  const errors = syntax(`${at}.type`, type, qualifiedName(type));
  if (!STATUSES.includes(status)) errors.push(notSupported(`${at}.status`, status, STATUSES));
  if (observedGeneration < 0) {
    errors.push(invalid(`${at}.observedGeneration`, observedGeneration, 'must be greater than or equal to zero'));
  }
  if (lastTransitionTime === undefined) errors.push(required(`${at}.lastTransitionTime`, 'must be set'));
  if (reason === '') errors.push(required(`${at}.reason`, 'must be set'));
  else addErrors(errors, syntax(`${at}.reason`, reason, conditionReason(reason)));
  if (reason.length > MAX_REASON) errors.push(tooLong(`${at}.reason`, MAX_REASON));
  if (message.length > MAX_MESSAGE) errors.push(tooLong(`${at}.message`, MAX_MESSAGE));
  return errors;
}
