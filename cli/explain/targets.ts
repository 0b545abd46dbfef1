// Which collector and which rules belong to a kind of object.

import { UserError } from '../../lib/errors.ts';
import { collectPod } from './collect/pod.ts';
import type { Sources } from './collect/source.ts';
import type { Explanation, Target } from './finding.ts';
import { finePod } from './fine.ts';
import { explain } from './judge.ts';
import { POD_RULES, unknownPod } from './rules/pod-rules.ts';

export async function explainTarget(sources: Sources, target: Target): Promise<Explanation> {
  const { kind, namespace, name } = target;
  switch (kind) {
    case 'pod':
      return explain(target, await collectPod(sources, namespace, name), POD_RULES, unknownPod, finePod);
    case 'node':
    case 'service':
    case 'pvc':
      throw new UserError(`a ${kind} cannot be explained yet: only pods can`);
  }
}
