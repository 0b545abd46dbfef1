// Why a claim is not bound: the links of a chain that the rules about pods and those about claims share. Pure.

import { formatBinary, requestedBytes } from '../../controlplane/storage/objects.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { ClaimFact } from './facts.ts';
import type { Cause, Command } from './finding.ts';

export interface ClaimState {
  /** Ends a sentence that begins with "claim NAME". */
  readonly verdict: string;
  readonly chain: readonly Cause[];
  readonly commands: readonly Command[];
  /** It goes on when a pod uses the claim. */
  readonly waits: boolean;
}

const FAILURES = ['ProvisioningFailed', 'FailedBinding', 'ProvisioningCleanupFailed'];

export function claimState(fact: ClaimFact): ClaimState | undefined {
  const { claim, volume, storageClass, events } = fact;
  const { name, namespace = '', creationTimestamp } = claim.metadata;
  const { storageClassName: className = '', volumeName = '' } = claim.spec ?? {};
  const since = parseRfc3339(creationTimestamp);
  const at = since === undefined ? {} : { since };
  const phase = claim.status?.phase ?? 'Pending';
  if (phase === 'Bound') return undefined;
  const look = { command: `kubectl -n ${namespace} describe pvc ${name}`, why: 'the claim with its events' };
  if (phase === 'Lost') {
    return {
      verdict: `has lost its volume ${volumeName}`,
      chain: [{ text: `claim ${name} is Lost: its PersistentVolume ${volumeName} was deleted`, ...at }],
      commands: [look],
      waits: false,
    };
  }
  const pending: Cause = {
    text: `claim ${name} is ${phase}: it asks for ${formatBinary(requestedBytes(claim))}, ${(claim.spec?.accessModes ?? []).join(', ')}, class ${className === '' ? 'none' : className}`,
    ...at,
  };
  // The controller calls this a failure of provisioning, too.
  if (className !== '' && storageClass === undefined) {
    return {
      verdict: `names StorageClass ${className}, which does not exist`,
      chain: [
        pending,
        {
          text: `without the class no provisioner is responsible`,
          call: { name: `GET storageclasses/${className}`, to: 'the API server', answer: 'not found' },
        },
      ],
      commands: [{ command: 'kubectl get storageclass', why: 'the classes that there are' }, look],
      waits: false,
    };
  }
  const failure = events.findLast((event) => FAILURES.includes(event.reason) && event.type === 'Warning');
  if (failure !== undefined) {
    return {
      verdict: 'has no volume: making one failed',
      chain: [
        pending,
        {
          text: 'the provisioner could not make a volume',
          call: { name: 'CreateVolume', to: storageClass?.provisioner ?? failure.source, answer: failure.message },
          since: failure.first,
          count: failure.count,
        },
      ],
      commands: [look],
      waits: false,
    };
  }
  if (className === '') {
    return {
      verdict: `waits for a PersistentVolume that fits: it names no StorageClass that could make one`,
      chain: [pending, { text: 'no PersistentVolume without a class is free, large enough and of these access modes' }],
      commands: [
        { command: 'kubectl get pv,storageclass', why: 'volumes that are Available, and classes that make some' },
        look,
      ],
      waits: false,
    };
  }
  if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && volumeName === '') {
    return {
      verdict: `waits for a pod: class ${className} makes a volume only when a pod that uses the claim has a node`,
      chain: [pending, { text: `class ${className} has volumeBindingMode WaitForFirstConsumer` }],
      commands: [look],
      waits: true,
    };
  }
  const provisioner = storageClass?.provisioner ?? '';
  return {
    verdict: `waits for ${provisioner} to make a volume`,
    chain: [
      pending,
      {
        text: `class ${className} leaves it to ${provisioner}, which has neither made a volume nor reported an error`,
        call: { name: 'CreateVolume', to: provisioner, answer: 'no answer is known' },
      },
      ...(volume === undefined ? [] : [{ text: `volume ${volume.metadata.name} is ${volume.status?.phase}` }]),
    ],
    commands: [look, { command: 'kubectl get csidrivers,csinodes', why: 'whether the driver is there' }],
    waits: false,
  };
}
