// What the rules must notice of each fault that the simulated world can be given on purpose.

import type { Fault } from '../../../labs/sim/faults.ts';

/** What the broken rule's message must match. */
export const FAULTS = {
  'the runtime makes two sandboxes for one call': /live sandboxes/,
  'the runtime says that a container has ended while it runs':
    /while its predecessor runs|run at once|while .* runs|exit code is 143, not/,
  'CNI DEL gives no address back': /an address is held/,
  'the API server takes a phase back': /the phase of .* went from/,
  'the API server takes a restart count back': /restartCount of .* went from/,
  'the API server drops what others wrote': /a condition of another writer/,
  'the API server says that it wrote a status and did not':
    /status says|podIP is|ContainersReady is|restartCount is|exit code is/,
  'the API server says that it let a pod go and did not': /is still being deleted|object /,
  'a driver says that a volume is staged and it is not': /where it is not staged/,
  'a driver says that a volume is unpublished and it is not':
    /the agent unmounted|was unstaged while|is left|finalized while/,
  'CNI ADD gives an address twice': /which is held by/,
  'the agent forgets preStop hooks': /without its preStop hook/,
  'the agent shortens grace periods': /was killed after .* and was granted/,
  'the agent ignores shortened grace periods': /runs, and its deleted pod was granted/,
  'the agent stops sidecars with the rest': /sidecar .* is stopped while/,
  'the agent says that it resized and did not': /has .* cpu shares/,
  'the agent believes that everything is alive': /fails its liveness probe/,
  'the agent believes that everything is ready': /ready is true/,
  'the agent restarts at once': /restarted .* times, waited/,
  'the API server hides deadlines': /runs beyond its pod's deadline/,
  'the API server shows an old ConfigMap': /shows .* of the ConfigMap/,
  'the memory of processes is not counted': /short of memory|MemoryPressure is false/,
  'last words are lost': /message is/,
  'somebody removes the links to logs': /no link to its log/,
  'logs are left behind': /logs.pods.foreign/,
  'a cgroup counts as gone and is not': /finalized while it has a cgroup|is left/,
  'the node believes that its runtime answers': /Ready.*its runtime has been down/,
  'the node renews its lease too late': /the lease was not renewed/,
  'the node claims a pressure that was not measured': /the Node claims MemoryPressure/,
  'the node hides a pressure': /the Node does not say so/,
  'the agent restarts too late': /it is not started again/,
  "the node's transitions move with its heartbeats": /the transition of .* moved/,
  "the node's heartbeats go back": /the heartbeat of .* went from/,
  'the node renews its lease into the past': /the lease's renewTime went from/,
} as const satisfies Readonly<Record<Fault, RegExp>>;
