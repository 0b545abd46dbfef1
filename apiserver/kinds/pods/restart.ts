// Whether a container that has ended is to be started again, by its own rules, its policy and the pod's.

import type { Pod, PodStatus } from '../shapes.ts';

export function canRestart({ spec = {} }: Pod, ended: NonNullable<PodStatus['containerStatuses']>[number]): boolean {
  const container = (spec.containers ?? []).find((one) => one.name === ended.name);
  const exitCode = ended.state?.terminated?.exitCode ?? 0;
  if (container === undefined) return false;
  const decides = (container.restartPolicyRules ?? []).some(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return exitCodes !== undefined && (exitCodes.operator === 'In' ? listed : !listed);
  });
  if (decides) return true;
  const policy = container.restartPolicy ?? spec.restartPolicy;
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}
