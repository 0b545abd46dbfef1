// The flags of `nodelet apiserver` for the audit log and for limits of requests, by kube-apiserver's names.

import type { Command } from 'commander';
import type { AuditOptions } from '../../apiserver/audit/audit.ts';
import type { RequestLimits } from '../../apiserver/http/in-flight.ts';
import { UserError } from '../../lib/errors.ts';
import { truth } from './apiserver-auth.ts';
import { durationOption } from './duration-flag.ts';

export interface AuditFlags {
  readonly auditPolicyFile?: string;
  readonly auditLogPath?: string;
  readonly auditLogMaxsize: number;
  readonly auditLogMaxbackup: number;
  readonly auditLogMaxage: number;
  readonly maxRequestsInflight: number;
  readonly maxMutatingRequestsInflight: number;
  readonly enablePriorityAndFairness: boolean;
  readonly requestTimeout: number;
}

/** A whole number; `why` is upstream's message for one below 0. */
function whole(flag: string, why: (text: string) => string): (text: string) => number {
  return (text) => {
    if (/^-\d+$/.test(text)) throw new UserError(why(text));
    if (!/^\d{1,15}$/.test(text)) throw new UserError(`${flag}: "${text}" is not a whole number`);
    return Number(text);
  };
}

function kept(flag: string): (text: string) => number {
  return whole(flag, (text) => `${flag} ${text} can't be a negative number`);
}

function served(flag: string): (text: string) => number {
  return whole(flag, () => `${flag} can not be negative value`);
}

export function addAuditFlags(command: Command): void {
  command
    .option('--audit-policy-file <file>', 'which requests are recorded, and how much of them (audit.k8s.io/v1 Policy)')
    .option('--audit-log-path <file>', 'where audit events go; "-" is standard output')
    .option(
      '--audit-log-maxsize <megabytes>',
      'rotate the audit log at this size; 0 is 100',
      kept('--audit-log-maxsize'),
      0,
    )
    .option(
      '--audit-log-maxbackup <files>',
      'number of rotated files to keep; 0 is all',
      kept('--audit-log-maxbackup'),
      0,
    )
    .option(
      '--audit-log-maxage <days>',
      'age at which rotated files are deleted; 0 is never',
      kept('--audit-log-maxage'),
      0,
    )
    .option(
      '--max-requests-inflight <count>',
      'most read requests in flight; with priority and fairness added to the next one, as the concurrency that priority levels share',
      served('--max-requests-inflight'),
      400,
    )
    .option(
      '--max-mutating-requests-inflight <count>',
      'most mutating requests in flight',
      served('--max-mutating-requests-inflight'),
      200,
    )
    .option(
      '--enable-priority-and-fairness [true|false]',
      'limit requests by FlowSchemas and PriorityLevelConfigurations',
      truth,
      true,
    )
    .addOption(durationOption('--request-timeout', 'deadline of a request that is no watch, log or stream', 60_000));
}

export function auditOptions(flags: AuditFlags): AuditOptions {
  const { auditPolicyFile, auditLogPath } = flags;
  return {
    ...(auditPolicyFile === undefined ? {} : { policyFile: auditPolicyFile }),
    ...(auditLogPath === undefined ? {} : { logPath: auditLogPath }),
    maxSize: flags.auditLogMaxsize,
    maxBackup: flags.auditLogMaxbackup,
    maxAge: flags.auditLogMaxage,
  };
}

export function limitOptions(flags: AuditFlags): RequestLimits {
  const { maxRequestsInflight, maxMutatingRequestsInflight, enablePriorityAndFairness, requestTimeout } = flags;
  if (enablePriorityAndFairness && maxRequestsInflight + maxMutatingRequestsInflight <= 0) {
    throw new UserError(
      `invalid configuration: MaxRequestsInFlight=${maxRequestsInflight} and ` +
        `MaxMutatingRequestsInFlight=${maxMutatingRequestsInflight}; they must add up to something positive`,
    );
  }
  return {
    maxRequestsInflight,
    maxMutatingRequestsInflight,
    requestTimeoutMs: requestTimeout,
    priorityAndFairness: enablePriorityAndFairness,
  };
}
