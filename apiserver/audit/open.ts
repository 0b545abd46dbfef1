// The audit log by its flags: the policy is read, the file is opened.

import { Audit, type AuditOptions, type AuditParts } from './audit.ts';
import { loadPolicy } from './load.ts';
import { openLogFile, streamSink } from './log-file.ts';

/**
 * Undefined where nothing is to be recorded: without a policy, as upstream, or without a place for events. Rejects with
 * UserError for a policy or a file that cannot be used.
 */
export async function openAudit(
  options: AuditOptions,
  parts: Omit<AuditParts, 'policy' | 'sink'>,
): Promise<Audit | undefined> {
  const { policyFile, logPath, maxSize = 0, maxBackup = 0, maxAge = 0 } = options;
  const policy = policyFile === undefined ? undefined : loadPolicy(policyFile);
  if (logPath === undefined) return undefined;
  const { clock, log } = parts;
  if (policy === undefined) {
    log('No audit policy file provided, no events will be recorded for log backend');
    return undefined;
  }
  const sink =
    logPath === '-'
      ? streamSink(process.stdout, log)
      : await openLogFile({ path: logPath, maxSize, maxBackup, maxAge, clock, log });
  return new Audit({ policy, sink, ...parts });
}
