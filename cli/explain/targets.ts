// Which collector and which rules belong to a kind of object.

import { collectClaimFacts } from './collect/claim.ts';
import { collectNode } from './collect/node.ts';
import { collectPod } from './collect/pod.ts';
import { collectService } from './collect/service.ts';
import type { Sources } from './collect/source.ts';
import { collectWorkload } from './collect/workload.ts';
import type { Explanation, Target } from './finding.ts';
import { explain } from './findings.ts';
import { finePod } from './fine.ts';
import { CLAIM_RULES, fineClaim, unknownClaim } from './rules/claim-rules.ts';
import { forceDeletedFinding } from './rules/force-deleted.ts';
import { GONE_POD_RULES } from './rules/gone-pod-rules.ts';
import { fineNode, NODE_RULES, unknownNode } from './rules/node-rules.ts';
import { POD_RULES, unknownPod } from './rules/pod-rules.ts';
import { fineService, SERVICE_RULES, unknownService } from './rules/service-rules.ts';
import { fineWorkload, otherWorkload, WORKLOAD_RULES } from './rules/workload-rules.ts';

export async function explainTarget(sources: Sources, target: Target): Promise<Explanation> {
  const { kind, namespace, name } = target;
  switch (kind) {
    case 'pod': {
      const facts = await collectPod(sources, namespace, name);
      if (facts.kind === 'pod') return explain(target, facts, POD_RULES, unknownPod, finePod);
      return explain(target, facts, GONE_POD_RULES, forceDeletedFinding, () => []);
    }
    case 'node':
      return explain(target, await collectNode(sources, name), NODE_RULES, unknownNode, fineNode);
    case 'service': {
      const facts = await collectService(sources, namespace, name);
      return explain(target, facts, SERVICE_RULES, unknownService, fineService);
    }
    case 'pvc': {
      const facts = await collectClaimFacts(sources, namespace, name);
      return explain(target, facts, CLAIM_RULES, unknownClaim, fineClaim);
    }
    default: {
      const facts = await collectWorkload(sources, kind, namespace, name);
      return explain(target, facts, WORKLOAD_RULES, otherWorkload, fineWorkload);
    }
  }
}
